//! `sgd`: the final slot values of task dialogues.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Deserialize;
use threadkeep_memory::Draft;

use super::{Args, Conversations, Tally, records};

#[derive(Debug, Deserialize)]
struct Dialogue {
    turns: Vec<Turn>,
    /// Accepted spellings of each final value, by service and slot.
    final_state: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    speaker: String,
    text: String,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let conversations = Conversations::new()?;
    let mut tally = Tally::default();
    for dialogue in records::<Dialogue>(&args.path)? {
        let thread = conversations.open_thread().await?;
        let (mut with_summary, mut without_summary) = (String::new(), String::new());
        for turn in dialogue.turns {
            let draft = if turn.speaker == "user" { Draft::user(turn.text) } else { Draft::assistant(turn.text) };
            conversations.append(thread, draft).await?;
            // A context is read after every turn, as in an application.
            with_summary = conversations.model_text(thread, &args.summarising()).await?;
            without_summary = conversations.model_text(thread, &args.plain()).await?;
        }
        for spellings in dialogue.final_state.values().flat_map(BTreeMap::values) {
            let contains = |text: &str| spellings.iter().any(|spelling| text.contains(&spelling.to_lowercase()));
            tally.add(contains(&with_summary), contains(&without_summary));
            if args.missing && !contains(&with_summary) {
                eprintln!("missing: {spellings:?}");
            }
        }
    }
    println!("{}", tally.json());
    Ok(())
}
