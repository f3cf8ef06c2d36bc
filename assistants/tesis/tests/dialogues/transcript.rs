//! The transcript in the documentation.

use super::test_env::TestEnv;

/// Returns the lines of the transcript, without the command.
fn transcript() -> String {
    let text = include_str!("../../../../docs/tesis.md");
    let block = text.split("$ threadkeep chat tesis\n").nth(1).and_then(|rest| rest.split("\n```").next());
    block.expect("docs/tesis.md has a transcript").trim().to_owned()
}

#[tokio::test]
async fn the_documented_conversation_matches_the_actual_one() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let documented = transcript();
    let mut actual = Vec::new();
    for question in documented.lines().filter_map(|line| line.strip_prefix("> ")) {
        actual.push(format!("> {question}\n{}", conversation.say(question).await));
    }
    let actual = actual.join("\n\n");
    assert!(documented == actual, "docs/tesis.md differs from:\n{actual}");
}
