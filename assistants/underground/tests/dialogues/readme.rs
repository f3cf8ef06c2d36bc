//! The README's conversation about London, compared with the assistant's actual replies without a network.

use crate::env::TestEnv;
use crate::tfl::Fault;

const README: &str = include_str!("../../../../README.md");
/// Maximum width of a call's arguments in the terminal.
const ARGUMENT_COLUMNS: usize = 60;

#[tokio::test]
async fn readme_conversation_matches_actual_replies() {
    let (_, section) = README.split_once("$ threadkeep chat underground\n").expect("the README has the transcript");
    let (transcript, _) = section.split_once("```").unwrap();
    let questions: Vec<&str> = transcript.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    assert!(questions.len() >= 3);
    let env = TestEnv::new().await;
    env.tfl.world.lock().unwrap().faults.insert(String::new(), Fault::Status(404));
    let conversation = env.conversation("ana").await;
    let mut actual = String::new();
    for question in questions {
        let turn = conversation.turn(question).await;
        actual.push_str(&format!("> {question}\n"));
        for call in &turn.tool_calls {
            actual.push_str(&format!("· {} {}\n", call.name, truncated(call.arguments.as_str())));
        }
        actual.push_str(&format!("{}\n", turn.reply));
    }
    let lines = |text: &str| text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&actual), lines(transcript), "{actual}");
}

fn truncated(arguments: &str) -> String {
    if arguments.chars().count() <= ARGUMENT_COLUMNS {
        return arguments.to_owned();
    }
    let start: String = arguments.chars().take(ARGUMENT_COLUMNS - 1).collect();
    format!("{}…", start.trim_end())
}
