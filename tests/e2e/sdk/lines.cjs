// lines(run): answers each line of stdin with one line, both JSON, until the input ends.
"use strict";
const readline = require("node:readline");

module.exports = async (run) => {
	for await (const line of readline.createInterface({ input: process.stdin }))
		process.stdout.write(JSON.stringify(await run(JSON.parse(line))) + "\n");
};
