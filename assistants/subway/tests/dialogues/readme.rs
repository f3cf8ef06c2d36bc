//! The README's conversation, held against what is said without a network.

use crate::world::World;

const README: &str = include_str!("../../../../README.md");
/// Columns of a call's arguments that a terminal shows.
const ARGUMENTS: usize = 60;

#[tokio::test]
async fn the_conversation_is_what_is_said() {
    let (_, section) = README.split_once("$ threadkeep chat subway\n").expect("the transcript");
    let (transcript, _) = section.split_once("```").unwrap();
    let questions: Vec<&str> = transcript.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    assert!(questions.len() >= 3);
    let world = World::new().await;
    let talk = world.talk("ana").await;
    let mut shown = String::new();
    for question in questions {
        let turn = talk.turn(question).await;
        shown.push_str(&format!("> {question}\n"));
        for call in &turn.tool_calls {
            shown.push_str(&format!("· {} {}\n", call.name, cut(call.arguments.as_str())));
        }
        shown.push_str(&format!("{}\n", turn.reply));
    }
    let lines = |text: &str| text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&shown), lines(transcript), "{shown}");
}

fn cut(arguments: &str) -> String {
    if arguments.chars().count() <= ARGUMENTS {
        return arguments.to_owned();
    }
    let shown: String = arguments.chars().take(ARGUMENTS - 1).collect();
    format!("{}…", shown.trim_end())
}
