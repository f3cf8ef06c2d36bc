//! Keeps a recall from feeding on earlier recalls. An answer that quotes messages, and the question that it answers, contain the
//! words of these messages but are not further evidence, so only what they add counts. The sources of an answer identify the
//! messages that it is based on. Without sources, the ranking is unchanged.

use std::collections::{BTreeMap, HashMap, HashSet};

use threadkeep_context::recall::Question;
use threadkeep_core::text::{content_terms, indexed_terms};
use threadkeep_core::{Message, Role, Scope, SearchHit, Source, ThreadId};

use super::RecalledMessage;
use crate::{Memory, Result};

/// How many messages after a question are searched for its answer. Tool calls and results precede the answer.
const ANSWER_REACH: u64 = 6;

/// The thread and the position of a message.
type Position = (ThreadId, u64);
pub(super) type MessagesByPosition = BTreeMap<Position, Message>;

impl Memory {
    /// Removes ranked messages that add nothing to the messages that they are based on, and multiplies the scores of the others by
    /// the share that they add ([`Lookup::added_share`]). `unranked` contains other messages that were read; missing answers are
    /// read for the first `count` messages.
    pub(super) async fn without_restatements(
        &self,
        scope: &Scope,
        ranked: Vec<RecalledMessage>,
        question: &Question,
        unranked: MessagesByPosition,
        count: usize,
    ) -> Result<Vec<RecalledMessage>> {
        let mut lookup = Lookup::new(&ranked, unranked);
        let questions = ranked.iter().take(count).filter(|found| found.message.content.role == Role::User);
        let unread = questions.flat_map(|found| lookup.unread_answer(found.thread, found.message.seq)).collect();
        lookup.read(self, scope, unread).await?;
        let bases: Vec<Option<Basis>> = ranked.iter().map(|found| lookup.basis(found)).collect();
        if bases.iter().all(Option::is_none) {
            return Ok(ranked);
        }
        let sources = bases.iter().flatten().flat_map(|basis| &basis.messages).map(|(position, _)| *position);
        let unread = sources.filter(|position| lookup.get(*position).is_none()).collect();
        lookup.read(self, scope, unread).await?;
        let share = |(found, basis): (&RecalledMessage, &Option<Basis>)| {
            basis.as_ref().and_then(|basis| lookup.added_share(&found.message, basis, question)).unwrap_or(1.0)
        };
        let shares: Vec<f64> = ranked.iter().zip(&bases).map(share).collect();
        let scaled = ranked.into_iter().zip(shares).filter(|(_, share)| *share > 0.0);
        let mut kept: Vec<RecalledMessage> =
            scaled.map(|(found, share)| RecalledMessage { score: found.score * share, ..found }).collect();
        // The sort is stable, so messages with equal scores keep their order.
        kept.sort_by(|one, other| other.score.total_cmp(&one.score));
        Ok(kept)
    }
}

/// What a message is based on.
struct Basis {
    /// The positions and ids of the messages that the answer cites.
    messages: Vec<(Position, String)>,
}

/// The messages that were read, by position.
struct Lookup<'a> {
    ranked: HashMap<Position, &'a Message>,
    unranked: MessagesByPosition,
}

impl<'a> Lookup<'a> {
    fn new(ranked: &'a [RecalledMessage], unranked: MessagesByPosition) -> Self {
        let ranked = ranked.iter().map(|found| ((found.thread, found.message.seq), &found.message)).collect();
        Self { ranked, unranked }
    }

    fn get(&self, position: Position) -> Option<&Message> {
        self.ranked.get(&position).copied().or_else(|| self.unranked.get(&position))
    }

    async fn read(&mut self, memory: &Memory, scope: &Scope, positions: HashSet<Position>) -> Result<()> {
        let hits: Vec<SearchHit> = positions.into_iter().map(|(thread, seq)| SearchHit { thread, seq }).collect();
        if !hits.is_empty() {
            let found = memory.read_hits(scope, hits).await?;
            self.unranked.extend(found.into_iter().map(|found| ((found.thread, found.message.seq), found.message)));
        }
        Ok(())
    }

    /// Returns what a message is based on. An assistant's message is based on the messages among its sources, a user's message on
    /// those among the sources of its answer. `None` if no message is cited.
    fn basis(&self, found: &RecalledMessage) -> Option<Basis> {
        let answer = match found.message.content.role {
            Role::Assistant => &found.message,
            Role::User => self.answer(found.thread, found.message.seq)?,
            Role::System | Role::Tool => return None,
        };
        let sources = answer.content.sources.iter();
        let messages: Vec<(Position, String)> =
            sources.filter_map(|source: &Source| Some((source.message_position()?, source.id.clone()))).collect();
        (!messages.is_empty()).then_some(Basis { messages })
    }

    /// Returns the positions to read in order to find the answer to a user's message; none if it is known.
    fn unread_answer(&self, thread: ThreadId, seq: u64) -> Vec<Position> {
        for next in seq + 1..=seq + ANSWER_REACH {
            match self.get((thread, next)) {
                None => return (next..=seq + ANSWER_REACH).map(|seq| (thread, seq)).collect(),
                Some(message) if ends_turn(message) => return Vec::new(),
                Some(_) => {}
            }
        }
        Vec::new()
    }

    fn answer(&self, thread: ThreadId, seq: u64) -> Option<&Message> {
        let mut following = (seq + 1..=seq + ANSWER_REACH).map_while(|next| self.get((thread, next)));
        following.find(|message| ends_turn(message)).filter(|message| message.content.role == Role::Assistant)
    }

    /// Returns the share of a message's words that are new. For a user's message, these are the words that occur neither in the
    /// messages that it is based on nor in the question. For an answer, these are the words of the question that do not occur in the
    /// messages that it is based on; other words are ignored. `None` if one of those messages no longer exists, because this message
    /// may then be the only one with its words.
    fn added_share(&self, message: &Message, basis: &Basis, question: &Question) -> Option<f64> {
        let mut sources = Vec::with_capacity(basis.messages.len());
        for (position, id) in &basis.messages {
            sources.push(self.get(*position).filter(|source| source.id.to_string() == *id)?.plain_text());
        }
        let text = message.plain_text();
        let (added, all) = match message.content.role {
            Role::User => {
                let question = question.terms();
                let known: HashSet<String> =
                    sources.iter().flat_map(|source| indexed_terms(source)).chain(question).collect();
                let words = content_terms(&text);
                (words.iter().filter(|(_, stems)| !stems.iter().any(|stem| known.contains(stem))).count(), words.len())
            }
            _ => {
                let known: Vec<Vec<u32>> = sources.iter().map(|source| question.count(source).counts).collect();
                let counts = question.count(&text).counts;
                let matching: Vec<usize> = (0..counts.len()).filter(|word| counts[*word] > 0).collect();
                let is_added = |word: &&usize| known.iter().all(|counts| counts[**word] == 0);
                (matching.iter().filter(is_added).count(), matching.len())
            }
        };
        // A message without such words was found through its neighbours, and adds nothing.
        Some(if all == 0 { 0.0 } else { added as f64 / all as f64 })
    }
}

/// Whether a message after a question is its answer, or belongs to another turn.
fn ends_turn(message: &Message) -> bool {
    match message.content.role {
        Role::Assistant => !message.plain_text().trim().is_empty(),
        Role::User => true,
        Role::System | Role::Tool => false,
    }
}
