#include "task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define NONE TASK__MAX
#define FENCE "```"

/* The text is the `what`: a prompt, and the work that a person takes it for. */
static const struct {
	enum task want;
	const char *text;
} cases[] = {
    /* code */
    {TASK_CODE, "Write a Python function that reverses a linked list"},
    {TASK_CODE, "Fix the bug in this code:\n" FENCE "python\nfor i in range(10) print(i)\n" FENCE},
    {TASK_CODE, "How do I sort an array in JavaScript by two keys?"},
    {TASK_CODE, "implement quicksort in C"},
    {TASK_CODE, "Can you refactor this to use async/await?\n" FENCE
                "js\nfetch(u).then(r => r.json())\n" FENCE},
    {TASK_CODE, "Why does main.c not link: undefined reference to `foo'"},
    {TASK_CODE, "TypeError: 'NoneType' object is not subscriptable"},
    {TASK_CODE, "Traceback (most recent call last):\n  File \"app.py\", line 3, in <module>\n"
                "KeyError: 'id'\nwhat is wrong?"},
    {TASK_CODE, "Exception in thread \"main\" java.lang.NullPointerException\n"
                "\tat com.acme.Story.tell(Story.java:12)"},
    {TASK_CODE, "diff --git a/x.c b/x.c\n@@ -1,2 +1,2 @@\n-int a;\n+int b;\nIs this right?"},
    {TASK_CODE, "Write a regex that matches an email address"},
    {TASK_CODE, "Write a SQL query that summarises sales by month"},
    {TASK_CODE, "Write a script that translates all .po files with an API"},
    {TASK_CODE,
        "Translate this Python function to Rust:\n" FENCE "python\ndef f(x): return x\n" FENCE},
    {TASK_CODE, "Please convert this code from Java into Kotlin"},
    {TASK_CODE, "explain what parse_header() does"},
    {TASK_CODE, "Add unit tests for src/store/sticky.rs"},
    {TASK_CODE, "What's the difference between a mutex and a semaphore in Rust code?"},
    {TASK_CODE, "Create a Dockerfile for a Node app"},
    {TASK_CODE, "git rebase says there are merge conflicts, what now?"},
    {TASK_CODE, "#include <stdio.h>\nint main(void) {\n\tprintf(\"a poem\");\n}\nwhy no newline?"},
    {TASK_CODE, "Make a website with a login form"},
    {TASK_CODE, "Write a program that tells stories"},
    {TASK_CODE, "I need a function to calculate the derivative of a polynomial in C++"},
    {TASK_CODE, "Could you do a code review of this pull request?"},
    {TASK_CODE, "My program has a memory leak, how can I find it?"},
    {TASK_CODE, FENCE "\nint main(void)\n{\n\treturn 0;\n}\n" FENCE},
    {TASK_CODE, "用 Python 写一个爬虫"},
    {TASK_CODE, "写一个函数，把英文翻译成中文"},
    {TASK_CODE, "帮我写一个讲故事的程序"},
    {TASK_CODE, "这段代码为什么报错？\n" FENCE "js\nlet a = ;\n" FENCE},
    {TASK_CODE, "請幫我寫一個函式，計算兩個日期相差幾天"},
    {TASK_CODE, "用正则表达式匹配手机号"},
    {TASK_CODE, "重构下面的代码"},
    {TASK_CODE, "把这个函数翻译成 Rust"},
    {TASK_CODE, "帮我实现一个 LRU 缓存，用 C++"},
    {TASK_CODE, "如何用 pandas 读取 data.csv 并去重？"},
    {TASK_CODE, "这个 Java 程序出现了空指针异常，怎么解决？"},
    {TASK_CODE, "编写一个 SQL 查询语句，统计每月的销售额"},
    {TASK_CODE, "给这个接口加上单元测试"},
    {TASK_CODE, "程式碼編譯不過，幫我看看 main.cpp"},
    {TASK_CODE, "帮我写一个总结文章的脚本"},
    /* reasoning */
    {TASK_REASONING, "Prove that the square root of 2 is irrational."},
    {TASK_REASONING, "Prove that this sorting algorithm terminates."},
    {TASK_REASONING, "Solve 3x + 5 = 20"},
    {TASK_REASONING, "Solve the equation x^2 - 5x + 6 = 0 and explain each step"},
    {TASK_REASONING, "What is the integral of x^2 * sin(x)?"},
    {TASK_REASONING, "A farmer has 17 sheep. All but 9 die. How many are left?"},
    {TASK_REASONING, "Think step by step: a train leaves at 3 and another at 5, which is first?"},
    {TASK_REASONING, "Analyze the pros and cons of nuclear energy for a small island"},
    {TASK_REASONING, "All bloops are razzies and all razzies are lazzies. Can we conclude that all "
                     "bloops are lazzies?"},
    {TASK_REASONING, "What is the probability of drawing two aces in a row?"},
    {TASK_REASONING, "Compare renting and buying a house over ten years"},
    {TASK_REASONING, "Derive the quadratic formula"},
    {TASK_REASONING, "Evaluate \\int_0^1 x^2 dx"},
    {TASK_REASONING, "Let p and q be primes. Show that pq has four divisors."},
    {TASK_REASONING, "Solve this riddle: I speak without a mouth and hear without ears."},
    {TASK_REASONING,
        "If 5 machines make 5 widgets in 5 minutes, how long do 100 machines need for 100 "
        "widgets?"},
    {TASK_REASONING, "Find all primes p such that p + 2 and p + 4 are prime"},
    {TASK_REASONING, "What are the trade-offs between a monarchy and a republic?"},
    {TASK_REASONING, "证明根号2是无理数"},
    {TASK_REASONING, "鸡兔同笼，共有35个头，94只脚，鸡和兔各有多少只？"},
    {TASK_REASONING, "求解方程 x^2 - 3x + 2 = 0"},
    {TASK_REASONING, "請證明三角形內角和為180度"},
    {TASK_REASONING, "请一步一步地思考：甲说乙在说谎，乙说丙在说谎，谁说的是真话？"},
    {TASK_REASONING, "掷两个骰子，点数之和为7的概率是多少？"},
    {TASK_REASONING, "分析一下远程办公的利弊"},
    {TASK_REASONING, "推导一元二次方程的求根公式"},
    {TASK_REASONING, "比较法国大革命和辛亥革命的异同"},
    {TASK_REASONING, "三个人住店花了30元，老板退5元，服务员藏了2元，还有1元去哪了？请推理"},
    /* translation */
    {TASK_TRANSLATION, "Translate this into French: Where is the station?"},
    {TASK_TRANSLATION, "Translate this code comment into English: // 初始化缓冲区"},
    {TASK_TRANSLATION,
        "Please translate the following text to German.\n\nThe function of the heart is to "
        "pump blood."},
    {TASK_TRANSLATION, "How do you say \"thank you\" in Japanese?"},
    {TASK_TRANSLATION, "What is the Spanish word for butterfly?"},
    {TASK_TRANSLATION, "Can you translate \"write a Python script\" into Chinese?"},
    {TASK_TRANSLATION, "Translate the poem below into English\n\n床前明月光，疑是地上霜。"},
    {TASK_TRANSLATION, "Give me a translation of this letter into Italian"},
    {TASK_TRANSLATION, "Translate this summary into Spanish: Sales rose in May."},
    {TASK_TRANSLATION, "What does \"Weltschmerz\" mean in English?"},
    {TASK_TRANSLATION, "Translate to English:\n" FENCE "text\n你好，世界\n" FENCE},
    {TASK_TRANSLATION, "You are to translate everything I send into Korean. Good morning!"},
    {TASK_TRANSLATION, "把下面这段话翻译成英文：今天天气很好。"},
    {TASK_TRANSLATION, "请把下面的代码注释翻译成中文：/* write the buffer to disk */"},
    {TASK_TRANSLATION, "翻译：Life is like a box of chocolates."},
    {TASK_TRANSLATION, "請將以下內容翻譯成日文：謝謝您的來信"},
    {TASK_TRANSLATION, "“缘分”用英语怎么说？"},
    {TASK_TRANSLATION, "这句话的中译英：我想写一首诗。"},
    {TASK_TRANSLATION, "帮我翻译一下这封邮件"},
    {TASK_TRANSLATION, "把这首诗译成英文"},
    {TASK_TRANSLATION, "把这段话翻译成英文，然后总结一下"},
    {TASK_TRANSLATION, "謝謝的英文怎麼說"},
    /* summary */
    {TASK_SUMMARY,
        "Summarize the following article in three sentences.\n\nThe city council met on Monday."},
    {TASK_SUMMARY, "Give me a summary of the meeting: we talked about the new website."},
    {TASK_SUMMARY, "TL;DR of this please: it was a long day and nothing worked."},
    {TASK_SUMMARY, "What are the key points of this report?"},
    {TASK_SUMMARY, "Please condense this to 100 words: ..."},
    {TASK_SUMMARY, "Here is an article about Python. Summarize it for my boss."},
    {TASK_SUMMARY,
        "Summarise this story in one line: A fox sees some grapes and cannot reach them."},
    {TASK_SUMMARY, "Given the following poem, sum up what it says"},
    {TASK_SUMMARY, "Write a short summary of the plot of Hamlet"},
    {TASK_SUMMARY, "Could you recap what we have so far?"},
    {TASK_SUMMARY, "Extract the main ideas from this email:\n> please write the code by Friday"},
    {TASK_SUMMARY, "总结一下这篇文章：人工智能正在改变世界。"},
    {TASK_SUMMARY, "请用中文总结这段英文：The weather was fine."},
    {TASK_SUMMARY, "用三句话概括下面的内容"},
    {TASK_SUMMARY, "請為這篇論文寫一份摘要"},
    {TASK_SUMMARY, "归纳会议要点：1. 预算 2. 进度"},
    {TASK_SUMMARY, "幫我總結以下會議記錄"},
    {TASK_SUMMARY, "这篇文章主要讲了什么？"},
    {TASK_SUMMARY, "提炼出这份报告的要点"},
    /* creative */
    {TASK_CREATIVE, "Write a poem about the sea"},
    {TASK_CREATIVE, "Write a poem about a Python programmer who hates bugs"},
    {TASK_CREATIVE, "Write a story in which a detective says 'translate this letter'"},
    {TASK_CREATIVE, "Tell me a joke"},
    {TASK_CREATIVE, "Compose a song about summarizing books"},
    {TASK_CREATIVE, "Draft an email to my boss asking for two days off"},
    {TASK_CREATIVE, "Write an essay in English about climate change"},
    {TASK_CREATIVE, "I need a slogan for a coffee shop"},
    {TASK_CREATIVE, "Roleplay as a pirate and greet me"},
    {TASK_CREATIVE, "Brainstorm ten names for a cat"},
    {TASK_CREATIVE, "Continue the story: the door opened and"},
    {TASK_CREATIVE, "Make up... I mean, write a haiku on winter"},
    {TASK_CREATIVE, "Rewrite this letter so that it sounds friendlier"},
    {TASK_CREATIVE, "写一首关于程序员的诗"},
    {TASK_CREATIVE, "给我讲一个睡前故事"},
    {TASK_CREATIVE, "帮我写一篇关于环保的作文"},
    {TASK_CREATIVE, "請寫一首關於秋天的詩"},
    {TASK_CREATIVE, "为新款手机写一段广告文案"},
    {TASK_CREATIVE, "续写：夜深了，门外传来脚步声"},
    {TASK_CREATIVE, "帮我润色这段话：今天我去公园玩的很开心"},
    {TASK_CREATIVE, "幫我寫一封感謝信給老師"},
    {TASK_CREATIVE, "写一个故事，主角是一个翻译"},
    {TASK_CREATIVE, "给我的猫起一个名字"},
    /* simple questions */
    {TASK_SIMPLE, "hi"},
    {TASK_SIMPLE, "Hello!"},
    {TASK_SIMPLE, "thanks"},
    {TASK_SIMPLE, "What is the capital of France?"},
    {TASK_SIMPLE, "Who wrote War and Peace?"},
    {TASK_SIMPLE, "How many planets are there?"},
    {TASK_SIMPLE, "What does \"summarize\" mean?"},
    {TASK_SIMPLE, "Is \"Please translate this text\" a polite sentence?"},
    {TASK_SIMPLE, "Who invented Python?"},
    {TASK_SIMPLE, "Explain the difference between weather and climate"},
    {TASK_SIMPLE, "Why is the sky blue?"},
    {TASK_SIMPLE, "Answer in Chinese: what is a black hole?"},
    {TASK_SIMPLE, "Recommend a good restaurant in Rome"},
    {TASK_SIMPLE, "你好"},
    {TASK_SIMPLE, "谢谢"},
    {TASK_SIMPLE, "法国的首都是哪里？"},
    {TASK_SIMPLE, "天空为什么是蓝色的？"},
    {TASK_SIMPLE, "《红楼梦》的作者是谁？"},
    {TASK_SIMPLE, "一年有多少天？"},
    {TASK_SIMPLE, "台灣最高的山是哪一座？"},
    {TASK_SIMPLE, "“总结”这个词是什么意思？"},
    {TASK_SIMPLE, "介绍一下北京"},
    {TASK_SIMPLE, "\"What is love?\""},
    {TASK_SIMPLE, "🙂"},
    /* all kinds once more, in other words */
    {TASK_CODE, "my unit test keeps timing out on CI, any idea?"},
    {TASK_CODE, "what is the time complexity of heapsort"},
    {TASK_CODE, "Generate a TypeScript interface from this JSON: {\"a\":1}"},
    {TASK_CODE, "convert this curl command to python requests"},
    {TASK_CODE, "Why is my useEffect firing twice?"},
    {TASK_CODE, "explain this error: ECONNREFUSED 127.0.0.1:5432"},
    {TASK_CODE, "nginx returns 502 with php-fpm, how to debug"},
    {TASK_CODE, "Docker 容器启动后马上退出，怎么排查"},
    {TASK_CODE, "用递归写斐波那契数列"},
    {TASK_CODE, "这个类为什么会内存泄漏？"},
    {TASK_CODE, "vue3 的 ref 和 reactive 有什么区别"},
    {TASK_CODE, "写一个 shell 命令批量重命名文件"},
    {TASK_REASONING, "If all cats are animals and some animals are black, are some cats black?"},
    {TASK_REASONING, "How many ways can 8 people sit around a round table?"},
    {TASK_REASONING, "Find the derivative of f(x) = x^3 - 2x"},
    {TASK_REASONING, "Should our startup raise prices or cut costs? Weigh both options carefully"},
    {TASK_REASONING, "Is it possible to tile a 8x8 board with two corners removed using dominoes?"},
    {TASK_REASONING, "小明有5个苹果，给了小红2个，又买了3个，现在有几个？"},
    {TASK_REASONING, "已知函数 f(x)=x^2+1，求 f(3) 的值"},
    {TASK_REASONING, "甲乙丙三人中只有一人说真话，请推断是谁偷了钱"},
    {TASK_REASONING, "为什么这家公司会破产？请从财务角度深入分析"},
    {TASK_TRANSLATION, "what's \"good luck\" in German"},
    {TASK_TRANSLATION, "English to Spanish: I would like a coffee"},
    {TASK_TRANSLATION, "Put this sentence into French for me: the cat is asleep"},
    {TASK_TRANSLATION, "translation needed for this contract, Chinese to English"},
    {TASK_TRANSLATION, "我爱你 法语怎么讲"},
    {TASK_TRANSLATION, "请翻成繁体中文：软件"},
    {TASK_TRANSLATION, "英文翻译中文：Never give up"},
    {TASK_TRANSLATION, "这句日语是什么意思：おはようございます"},
    {TASK_SUMMARY,
        "In a nutshell, what does the following text say?\n\nThe treaty was signed in 1648 and ended the war."},
    {TASK_SUMMARY, "Make bullet points out of these meeting notes"},
    {TASK_SUMMARY, "Give me the highlights of this transcript"},
    {TASK_SUMMARY,
        "Shorten this paragraph to one sentence: The quick brown fox jumps over the lazy dog near the river."},
    {TASK_SUMMARY, "用一句话说明下文的主旨"},
    {TASK_SUMMARY, "把这段文字压缩到100字以内"},
    {TASK_SUMMARY, "請整理以下逐字稿的重點"},
    {TASK_SUMMARY, "帮我做个会议纪要"},
    {TASK_CREATIVE, "Write a love letter to my wife"},
    {TASK_CREATIVE, "Come up with a catchy title for my blog"},
    {TASK_CREATIVE, "Give me three ideas for a birthday party theme"},
    {TASK_CREATIVE, "Make this paragraph sound more professional: we done good"},
    {TASK_CREATIVE, "Write lyrics in the style of Bob Dylan"},
    {TASK_CREATIVE, "以春天为题写一首七言绝句"},
    {TASK_CREATIVE, "帮我想几个奶茶店的店名"},
    {TASK_CREATIVE, "写一份自我介绍"},
    {TASK_CREATIVE, "編一個關於小狐狸的童話"},
    {TASK_SIMPLE, "how tall is mount everest"},
    {TASK_SIMPLE, "When did WW2 end?"},
    {TASK_SIMPLE, "good morning"},
    {TASK_SIMPLE, "can you help me?"},
    {TASK_SIMPLE, "What language do they speak in Brazil?"},
    {TASK_SIMPLE, "Who wrote the novel Dune?"},
    {TASK_SIMPLE, "水的沸点是多少度"},
    {TASK_SIMPLE, "今天星期几"},
    {TASK_SIMPLE, "請問日本的首都在哪裡？"},
    {TASK_SIMPLE, "谁写了《三体》这部小说？"},
    {TASK_SIMPLE, "早上好"},
    {TASK_SIMPLE, "define photosynthesis"},
    {TASK_CODE, "My React component re-renders on every keystroke, how do I stop it?"},
    {TASK_CODE, "Set up a GitHub Actions workflow that runs pytest on push"},
    {TASK_CODE, "why does git push get rejected"},
    {TASK_CODE, "What does this do? awk '{print $2}' file.txt"},
    {TASK_CODE, "Port this Perl script to Python please"},
    {TASK_CODE, "segfault when calling free() twice"},
    {TASK_CODE, "make it compile under C++20"},
    {TASK_CODE, "写个定时任务，每天凌晨备份 MySQL"},
    {TASK_CODE, "Spring Boot 启动失败，提示端口被占用"},
    {TASK_CODE, "怎么用 CSS 让 div 垂直居中"},
    {TASK_CODE, "帮我优化这条 SQL"},
    {TASK_CODE, "請解釋這段程式碼的作用：for(int i=0;i<n;i++) sum+=a[i];"},
    {TASK_REASONING,
        "Two trains 300 km apart approach each other at 60 and 90 km/h. When do they meet?"},
    {TASK_REASONING, "Show that there are infinitely many primes"},
    {TASK_REASONING, "What's the expected number of coin flips to get two heads in a row?"},
    {TASK_REASONING, "Who is lying? Anna says Ben lies, Ben says Carl lies, Carl says both lie."},
    {TASK_REASONING, "Critically assess the argument that free will is an illusion"},
    {TASK_REASONING, "一个水池有两个进水管，甲管单独注满要6小时，乙管要4小时，同时开多久注满？"},
    {TASK_REASONING, "请分析这次项目失败的原因"},
    {TASK_REASONING, "解方程组：x+y=5, x-y=1"},
    {TASK_REASONING, "如果所有的猫都怕水，而汤姆不怕水，汤姆是猫吗？请说明推理过程"},
    {TASK_REASONING, "求函数 y=x^2-4x+3 的最小值"},
    {TASK_TRANSLATION, "Can you render this paragraph in idiomatic English? 我们明天见。"},
    {TASK_TRANSLATION, "how to say happy birthday in korean"},
    {TASK_TRANSLATION, "Translate the error message below to Chinese: File not found"},
    {TASK_TRANSLATION, "what is dog in french"},
    {TASK_TRANSLATION, "翻譯成英文：我明天不能來"},
    {TASK_TRANSLATION, "帮我把简历翻成英文"},
    {TASK_TRANSLATION, "这段德语帮我看看写的什么，翻译一下"},
    {TASK_TRANSLATION, "请用地道的英语表达：我有点累了"},
    {TASK_SUMMARY, "Give me the gist of this thread"},
    {TASK_SUMMARY, "Please produce an abstract for the paper below"},
    {TASK_SUMMARY, "What are the main takeaways from this interview?"},
    {TASK_SUMMARY, "Summarize: The quick brown fox."},
    {TASK_SUMMARY, "Can you boil this down to five bullets?"},
    {TASK_SUMMARY, "read this and tell me the most important facts"},
    {TASK_SUMMARY, "太长不看，帮我总结"},
    {TASK_SUMMARY, "这本书的主要内容是什么？"},
    {TASK_SUMMARY, "把会议录音整理成纪要"},
    {TASK_SUMMARY, "幫我濃縮成三點"},
    {TASK_CREATIVE, "Write a limerick about a cat from Spain"},
    {TASK_CREATIVE, "Suggest a name for my new bakery"},
    {TASK_CREATIVE, "Invent a backstory for a villain"},
    {TASK_CREATIVE, "Write a wedding toast for my brother"},
    {TASK_CREATIVE, "Describe a sunset as if you were a robot"},
    {TASK_CREATIVE, "write me a cover letter for a nurse position"},
    {TASK_CREATIVE, "帮我写个请假条"},
    {TASK_CREATIVE, "写几句生日祝福"},
    {TASK_CREATIVE, "以第一人称写一篇穿越小说的开头"},
    {TASK_CREATIVE, "幫我想一個品牌名稱"},
    {TASK_CREATIVE, "模仿鲁迅的风格写一段话"},
    {TASK_SIMPLE, "what time zone is Beijing in"},
    {TASK_SIMPLE, "Who is the president of Brazil?"},
    {TASK_SIMPLE, "ok"},
    {TASK_SIMPLE, "How far is the moon?"},
    {TASK_SIMPLE, "Are tomatoes fruit?"},
    {TASK_SIMPLE, "test"},
    {TASK_SIMPLE, "你是谁？"},
    {TASK_SIMPLE, "感冒了吃什么药好"},
    {TASK_SIMPLE, "中国有多少个省"},
    {TASK_SIMPLE, "世界上最长的河是哪条？"},
    {TASK_SIMPLE, "請問現在幾點？"},
    /* nothing speaks for any */
    {NONE, ""},
    {NONE, " \n\t "},
    {NONE, "Rename what we talked about in every place of the project that you know"},
    {NONE,
        "The house stands on a hill. Around it there are trees, and behind the trees lies the lake, "
        "which freezes in winter. In spring the ice melts and the birds come back from the south. "
        "The owner has lived there for years and knows every bird by its voice."},
};

static enum task
guess(const char *text)
{
	struct task_prompt prompt = {.text = text_span(text)};

	return task_guess(&prompt);
}

static const char *
shown(enum task task)
{
	return task == TASK__MAX ? "none" : task_name(task);
}

static void
test_cases(void **state)
{
	size_t right = 0;

	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		enum task got = guess(cases[i].text);

		right += got == cases[i].want;
		if (got != cases[i].want)
			print_error("%.80s: got %s, want %s\n", cases[i].text, shown(got),
			    shown(cases[i].want));
	}
	print_message("%zu of %zu prompts as labelled\n", right, NELEM(cases));
	assert_int_equal(right, NELEM(cases));
}

/* Of a message of its own, with what goes beside it. */
static const struct {
	const char *what, *text, *tools[4];
	bool picture;
	enum task want;
} around[] = {
    {"an editor and a shell", "hi", {"Edit", "Bash"}, false, TASK_CODE},
    {"names with words around them", "go on", {"mcp__files__read_file", "run_command"}, false,
        TASK_CODE},
    {"an editor does not turn a poem into code", "Write a poem about rain", {"str_replace_editor"},
        false, TASK_CREATIVE},
    {"tools of an agent do", "Summarize what you did", {"Read", "Edit", "Bash", "Grep"}, false,
        TASK_CODE},
    {"a tool for anything else", "What is the weather in Rome?", {"get_weather"}, false,
        TASK_SIMPLE},
    {"a picture is no simple question", "What is this?", {NULL}, true, NONE},
    {"a picture of code", "Fix the bug in this code", {NULL}, true, TASK_CODE},
    {"a picture alone", "", {NULL}, true, NONE},
};

static void
test_around(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(around); i++) {
		struct span tools[NELEM(around[0].tools)];
		struct task_prompt prompt = {.text = text_span(around[i].text),
		    .tools = tools,
		    .has_picture = around[i].picture};
		enum task got;

		while (prompt.ntools < NELEM(tools) && around[i].tools[prompt.ntools] != NULL) {
			tools[prompt.ntools] = text_span(around[i].tools[prompt.ntools]);
			prompt.ntools++;
		}
		got = task_guess(&prompt);
		if (got != around[i].want)
			fail_msg("%s: got %s, want %s", around[i].what, shown(got),
			    shown(around[i].want));
	}
}

/* What is asked of a pasted document stands before or behind it. */
static const struct {
	const char *what, *before, *document, *after;
	enum task want;
} pasted[] = {
    {"summary asked behind it", "", "He wrote a function and a poem. ", "\n\nSummarize the above.",
        TASK_SUMMARY},
    {"summary asked before it", "Please summarise this report:\n\n", "The code was translated. ",
        "", TASK_SUMMARY},
    {"translation of it", "Translate into German:\n", "A summary of the story follows. ", "",
        TASK_TRANSLATION},
    {"translation asked behind it", "", "会议总结了去年的工作。", "\n请把上面的内容翻译成英文",
        TASK_TRANSLATION},
    {"summary of Chinese", "请总结下面的文章：\n", "他写了一首诗，翻译了一本小说。", "",
        TASK_SUMMARY},
    {"code in a fence, asked behind it", "```\n", "x = summarize(poem);\n", "```\nWhat does it do?",
        TASK_CODE},
    {"a log", "Why does this fail?\n", "ERROR: cannot open a.txt\n", "", TASK_CODE},
    {"words only in the middle", "", "The lake lies behind the hill and nobody knows its depth. ",
        "And so they lived for many years in the house by the lake.", NONE},
};

static void
test_pasted(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(pasted); i++)
		for (size_t size = 2000; size <= 200000; size *= 10) {
			size_t n = strlen(pasted[i].document), at = 0;
			char *text = malloc(size + 1000);
			enum task got;

			memcpy(text, pasted[i].before, strlen(pasted[i].before));
			at = strlen(pasted[i].before);
			for (; at + n < size; at += n)
				memcpy(text + at, pasted[i].document, n);
			memcpy(text + at, pasted[i].after, strlen(pasted[i].after) + 1);
			got = guess(text);
			free(text);
			if (got != pasted[i].want)
				fail_msg("%s, %zu bytes: got %s, want %s", pasted[i].what, size,
				    shown(got), shown(pasted[i].want));
		}
}

static const struct {
	const char *name;
	enum task want;
} named[] = {
    {"code", TASK_CODE},
    {"code-generation", TASK_CODE},
    {"Code_Generation", TASK_CODE},
    {"code generation", TASK_CODE},
    {"complex-reasoning", TASK_REASONING},
    {"MATH", TASK_REASONING},
    {"translate", TASK_TRANSLATION},
    {"text-summarization", TASK_SUMMARY},
    {"summarise", TASK_SUMMARY},
    {"creative-writing", TASK_CREATIVE},
    {"simple_question", TASK_SIMPLE},
    {"翻译", TASK_TRANSLATION},
    {"總結", TASK_SUMMARY},
    {"", NONE},
    {"-", NONE},
    {"coder", NONE},
    {"vision", NONE},
    {"codegenerationcodegenerationcodegenerationcodegenerationcodegenerationcodegeneration", NONE},
};

static void
test_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(named); i++) {
		struct span name = text_span(named[i].name);

		if (task_named(name) != named[i].want)
			fail_msg("%s: got %s, want %s", named[i].name, shown(task_named(name)),
			    shown(named[i].want));
	}
	for (unsigned t = 0; t < TASK__MAX; t++)
		assert_int_equal(task_named(text_span(task_name((enum task)t))), t);
	assert_string_equal(task_name(TASK__MAX), "");
}

static const struct {
	const char *a, *b;
	bool alike, same;
} pairs[] = {
    {"Code-Review", "code_review", true, true},
    {"codereview", " code review", true, true},
    {"code-review", "debugging", false, true},
    {"legal-review", "Legal Review", true, true},
    {"legal-review", "legal", false, false},
    {"legal", "vision", false, false},
    {"code", "translation", false, false},
    {"", "-_ ", true, true},
};

static void
test_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(pairs); i++) {
		struct span a = text_span(pairs[i].a), b = text_span(pairs[i].b);

		if (task_spelt_alike(a, b) != pairs[i].alike ||
		    task_spelt_alike(b, a) != pairs[i].alike)
			fail_msg("%s, %s: spelt alike?", pairs[i].a, pairs[i].b);
		if (task_is_same(a, b) != pairs[i].same || task_is_same(b, a) != pairs[i].same)
			fail_msg("%s, %s: the same?", pairs[i].a, pairs[i].b);
	}
}

/* Each of these, repeated to 1 MB, takes well below a second. */
static const char *const hostile[] = {"\"", "“", "'", " '", "`", "```\n", "~~~ c\n", "(", "(a",
    "\n", ">\n", "- \n", "@@ -1\n-\n", "at (\n", ".", "a.b.c.d", "?", "，", "写", "please ", "i",
    "i ", "to c ", "成", "\\frac", "x^2 = ", "\xff", "\xe4", "\xe3\x80", "如何", "write a ", "\t",
    "{\n", ";", "\r"};

static void
test_hostile(void **state)
{
	enum { SIZE = 1000000, REST = 64 };
	char *text = malloc(SIZE + REST);

	(void)state;
	for (size_t i = 0; i < NELEM(hostile); i++) {
		size_t n = strlen(hostile[i]);
		struct task_prompt prompt = {.text = {text, SIZE}};
		clock_t began = clock();

		for (size_t at = 0; at < SIZE; at += n)
			memcpy(text + at, hostile[i], n);
		(void)task_guess(&prompt);
		if (clock() - began > CLOCKS_PER_SEC / 2)
			fail_msg("'%s' repeated: %ld ms", hostile[i],
			    (long)(clock() - began) * 1000 / CLOCKS_PER_SEC);
	}
	free(text);
}

/* Cut at every fifth byte: no byte behind the end is read (valgrind, ASan). */
static void
test_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++)
		for (size_t n = strlen(cases[i].text); n > 0; n -= n < 5 ? n : 5) {
			char *copy = malloc(n);
			struct task_prompt prompt = {.text = {copy, n}};

			memcpy(copy, cases[i].text, n);
			(void)task_guess(&prompt);
			free(copy);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_around),
	    cmocka_unit_test(test_pasted),
	    cmocka_unit_test(test_named),
	    cmocka_unit_test(test_same),
	    cmocka_unit_test(test_hostile),
	    cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
