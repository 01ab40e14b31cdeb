#!/bin/sh
# One streamed chat through the gateway. The reply's words are printed as they come.
#
#   SLUICE_URL=https://host/llm SLUICE_TOKEN=sl-... examples/chat.sh 'What is FastCGI?' [MODEL]
set -eu
: "${SLUICE_URL:?the address of the gateway, without /v1}" "${SLUICE_TOKEN:?a token that the web server knows}"
[ $# -gt 0 ] || { echo "usage: chat.sh TEXT [MODEL]" >&2; exit 2; }

python3 - "$SLUICE_URL" "$SLUICE_TOKEN" "$@" <<'END'
import json, sys, urllib.error, urllib.request

url, token, text, model = (sys.argv[1:] + ["gpt-4o-mini"])[:4]
body = {"model": model, "stream": True, "messages": [{"role": "user", "content": text}]}
request = urllib.request.Request(url.rstrip("/") + "/v1/chat/completions", json.dumps(body).encode(),
                                 {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
try:
    answer = urllib.request.urlopen(request)
except urllib.error.HTTPError as e:
    sys.exit(f"{e.code}: {e.read().decode(errors='replace')}")
done = False
for line in answer:
    if not line.startswith(b"data:"):
        continue
    data = line[5:].strip()
    if data == b"[DONE]":
        done = True
        break
    event = json.loads(data)
    if "error" in event:
        sys.exit("\n" + event["error"]["message"])
    for choice in event.get("choices", []):
        print(choice.get("delta", {}).get("content") or "", end="", flush=True)
print()
sys.exit(None if done else "the answer was cut")
END
