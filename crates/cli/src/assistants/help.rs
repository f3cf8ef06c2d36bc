//! What the help of commands says of the assistants that are built in.

use threadkeep::agent::plugin::Example;

use super::BUILT_IN;

/// Their names, in the order of the list.
pub(crate) fn names() -> String {
    BUILT_IN.iter().map(|plugin| plugin.name).collect::<Vec<_>>().join(", ")
}

/// What `chat` does, with what each assistant does where the offline model speaks.
pub(crate) fn chat_details() -> String {
    let offline = BUILT_IN.iter().map(|plugin| plugin.offline).filter(|offline| !offline.is_empty());
    format!(
        "Talk with an assistant\n\nWithout a key of a language model in the environment the offline model answers: {}. \
         Ctrl-C stops an answer and keeps the conversation. With --json each line of standard input is a question, and \
         each line of the output the turn that answers it.",
        offline.collect::<Vec<_>>().join("; ")
    )
}

/// The assistants' examples of a command, a line each behind a newline. What they show begins at a column.
pub(crate) fn examples_of(command: &str, column: usize) -> String {
    let is_of_command = |example: &&Example| example.command.split(' ').next() == Some(command);
    lines(BUILT_IN.iter().flat_map(|plugin| plugin.examples).filter(is_of_command), column)
}

/// Examples as help shows them, a line each behind a newline.
pub(crate) fn lines<'a>(examples: impl IntoIterator<Item = &'a Example>, column: usize) -> String {
    let line = |Example { command, shows }: &Example| {
        let words = format!("  threadkeep {command}  ");
        format!("\n{}", format!("{words:column$}{shows}").trim_end())
    };
    examples.into_iter().map(line).collect()
}
