//! `sgd`: the final slot values of task dialogues.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Deserialize;
use threadkeep_memory::Draft;

use super::{Args, Talk, Tally, records};

#[derive(Debug, Deserialize)]
struct Dialogue {
    turns: Vec<Turn>,
    /// By service and slot, the ways to spell what was settled.
    final_state: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    speaker: String,
    text: String,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let talk = Talk::new()?;
    let mut tally = Tally::default();
    for dialogue in records::<Dialogue>(&args.path)? {
        let thread = talk.begin().await?;
        let (mut with, mut without) = (String::new(), String::new());
        for turn in dialogue.turns {
            let draft = if turn.speaker == "user" { Draft::user(turn.text) } else { Draft::assistant(turn.text) };
            talk.say(thread, draft).await?;
            // A context is read after every turn, as in life.
            with = talk.seen(thread, &args.summarising()).await?;
            without = talk.seen(thread, &args.plain()).await?;
        }
        for spellings in dialogue.final_state.values().flat_map(BTreeMap::values) {
            let holds = |text: &str| spellings.iter().any(|spelling| text.contains(&spelling.to_lowercase()));
            tally.add(holds(&with), holds(&without));
            if args.missing && !holds(&with) {
                eprintln!("missing: {spellings:?}");
            }
        }
    }
    println!("{}", tally.json());
    Ok(())
}
