//! The user's conversations as a source of context: messages that match a question, or that were sent at the time that
//! the question asks about.

mod bare_changes;
mod change_words;
mod event_days;
mod meanings;
mod references;
mod statement;

use async_trait::async_trait;
use jiff::Zoned;
use jiff::tz::TimeZone;
use threadkeep::agent::{ContextSource, ConversationSource, Excerpt, Failure, SourceQuery};
use threadkeep::dialogue::is_question;
use threadkeep::dialogue::time::{Direction, Period, TimeExpression};
use threadkeep::{Bound, Message, MessageQuery, Role, Scope, ThreadId, ThreadOrder, ThreadQuery, Timestamp};

use self::bare_changes::add_bare_changes;
use self::event_days::{add_distances, find_events, retain_on_day};
use self::meanings::{add_holding, add_meaning};
use self::references::referred_text;
use self::statement::mark_changed;
use crate::evidence::heading::with_reference;
use crate::evidence::question::{Question, QuestionWord};
use crate::evidence::related::expansion;
use crate::evidence::terms::{Match, Terms};
use crate::evidence::{best_first, states_user_name};

/// The maximum number of excerpts from which those of a given time are selected.
const MAX_RECALLED: usize = 200;
/// The maximum number of excerpts that are ranked for a question.
const MAX_RANKED: usize = 40;
/// The maximum number of recent threads that are read to find misspelt words.
const MAX_THREADS_READ: usize = 8;
/// The maximum number of threads, the most recently changed ones, that are searched for the messages of a given time.
const MAX_THREADS: usize = 50;
/// The maximum number of messages that are read per thread.
const MAX_MESSAGES: usize = 100;
/// The maximum length of a quoted reference, in characters.
const MAX_REFERENCE: usize = 200;

/// A source that finds messages in the user's conversations. The heading of an excerpt quotes the message that the
/// excerpt refers to ("Actually it moved to 14 May"), and states whether a later message changed the excerpt's
/// statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RememberedSource;

#[async_trait]
impl ContextSource for RememberedSource {
    fn name(&self) -> &str {
        "conversations"
    }

    async fn find(&self, source_query: &SourceQuery<'_>) -> Result<Vec<Excerpt>, Failure> {
        let question = Question::new(source_query.query, "");
        let mut found = match question.time_of_messages() {
            Some(time) => find_at_time(source_query, &question, time).await?,
            None if question.asks_for_events() => find_events(source_query, &question).await?,
            None => Vec::new(),
        };
        if found.is_empty() && question.time_of_messages().is_none() {
            found = find_widely(source_query, &question).await?;
        }
        retain_on_day(&mut found, &question, source_query.memory.now());
        for excerpt in &mut found {
            if let Some(text) = referred_text(source_query, excerpt).await {
                excerpt.heading = with_reference(&excerpt.heading, &text);
            }
            add_meaning(source_query, excerpt).await;
        }
        add_bare_changes(source_query, &mut found).await?;
        mark_changed(&mut found, &question);
        let asks_of_now = question.time.is_none_or(|time| time.period == Some(Period::RelativeDay(0)));
        if asks_of_now && !question.asks_what_was_said && !question.asks_past {
            found.iter_mut().for_each(|excerpt| add_holding(excerpt, source_query.memory.now()));
        }
        add_distances(&mut found, &question, source_query.query, source_query.memory.now());
        if question.time_of_messages().is_none() {
            found = best_first(&question, found);
            found.truncate(source_query.limit);
        }
        Ok(found)
    }
}

/// Finds the messages that contain words of the question, related words, or words that the question misspells.
async fn find_widely(source_query: &SourceQuery<'_>, question: &Question) -> Result<Vec<Excerpt>, Failure> {
    let mut found = ConversationSource.find(&SourceQuery { limit: MAX_RANKED, ..*source_query }).await?;
    let is_exact = |word: &&QuestionWord| {
        let contains = |excerpt: &Excerpt| Terms::new(&excerpt.text).contains(word) == Some(Match::Exact);
        found.iter().filter(|excerpt| !is_question(&excerpt.text)).any(contains)
    };
    let missing: Vec<&QuestionWord> = question.topic.iter().filter(|word| !is_exact(word)).collect();
    let mut others = Vec::new();
    let related = expansion(question.topic.iter().map(|word| word.stems.as_slice()));
    if !related.is_empty() {
        let query = SourceQuery { query: &related, limit: MAX_RANKED, ..*source_query };
        others = ConversationSource.find(&query).await?;
    }
    // The index does not find misspelt words, so the newest messages are read.
    let threads = match missing.is_empty() {
        true => Vec::new(),
        false => recent_threads(source_query.memory, source_query.scope, None).await?,
    };
    for thread in threads.into_iter().take(MAX_THREADS_READ) {
        let messages = messages_within(source_query, thread, None, None).await?;
        let statements = messages.iter().filter(|message| message.content.role == Role::User);
        let matches = |excerpt: &Excerpt| {
            let terms = Terms::new(&excerpt.text);
            let states_user_name = question.asks_for_name && states_user_name(&excerpt.text);
            states_user_name || missing.iter().any(|word| terms.contains(word).is_some())
        };
        others.extend(statements.filter_map(|message| Excerpt::of_message(thread, message)).filter(matches));
    }
    for excerpt in others {
        if !found.iter().any(|known| known.source.id == excerpt.source.id) {
            found.push(excerpt);
        }
    }
    Ok(found)
}

/// Finds the messages that were sent at a given time, on the question's topic or, if it has none, on any topic.
async fn find_at_time(
    source_query: &SourceQuery<'_>,
    question: &Question,
    time: TimeExpression,
) -> Result<Vec<Excerpt>, Failure> {
    let Some((start, end)) = span(time, source_query.memory.now()) else { return Ok(Vec::new()) };
    let is_within = |at: Timestamp| start.is_none_or(|start| at >= start) && end.is_none_or(|end| at < end);
    if question.has_no_topic() {
        let mut messages = Vec::new();
        for thread in recent_threads(source_query.memory, source_query.scope, start).await? {
            let found = messages_within(source_query, thread, start, end).await?;
            messages.extend(found.into_iter().filter(|message| is_within(message.created_at)).map(|it| (thread, it)));
        }
        messages.retain(|(_, message)| message.content.role == Role::User && !is_question(&message.plain_text()));
        messages.sort_by_key(|(_, message)| message.created_at);
        // If there are too many messages, the newest are kept.
        let first = messages.len().saturating_sub(source_query.limit);
        return Ok(messages[first..]
            .iter()
            .filter_map(|(thread, message)| Excerpt::of_message(*thread, message))
            .collect());
    }
    let all = ConversationSource.find(&SourceQuery { limit: MAX_RECALLED, ..*source_query }).await?;
    let said_at = |excerpt: &Excerpt| excerpt.source.fields.get("said_at")?.as_str()?.parse().ok();
    let within = all.into_iter().filter(|excerpt| said_at(excerpt).is_some_and(is_within));
    Ok(within.take(source_query.limit).collect())
}

/// Returns the range of instants of a past time, with days in UTC.
fn span(time: TimeExpression, now: Timestamp) -> Option<(Option<Timestamp>, Option<Timestamp>)> {
    let now = jiff::Timestamp::from_microsecond(now.as_micros()).ok()?.to_zoned(TimeZone::UTC);
    let (start, end) = time.span(&now, Direction::Past)?;
    let instant = |at: Zoned| Timestamp::from_micros(at.timestamp().as_microsecond()).ok();
    Some((start.and_then(instant), end.and_then(instant)))
}

/// Returns the user's threads that have changed since a given time, the most recent first, without ephemeral ones.
async fn recent_threads(
    memory: &threadkeep::Memory,
    scope: &Scope,
    since: Option<Timestamp>,
) -> Result<Vec<ThreadId>, Failure> {
    let page = memory.list_threads(scope, &ThreadQuery::new(ThreadOrder::Recent, MAX_THREADS)).await;
    let threads = page.map_err(|error| Failure::new("recall_failed", error.to_string()))?.threads;
    let kept = threads.into_iter().filter(|thread| !thread.is_ephemeral());
    let changed = kept.filter(|thread| since.is_none_or(|since| thread.updated_at >= since));
    Ok(changed.map(|thread| thread.id).collect())
}

async fn messages_within(
    source_query: &SourceQuery<'_>,
    thread: ThreadId,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
) -> Result<Vec<Message>, Failure> {
    let is_current = thread == source_query.thread;
    let before = match source_query.before_seq.filter(|_| is_current) {
        Some(seq) => Some(Bound::Seq(seq)),
        None => end.map(Bound::Time),
    };
    let after = start.map(|start| Bound::Time(start.plus_ms(-1)));
    let query = MessageQuery { before, after, ..MessageQuery::newest(MAX_MESSAGES) };
    let page = source_query.memory.messages(source_query.scope, thread, &query).await;
    Ok(page.map_err(|error| Failure::new("recall_failed", error.to_string()))?.messages)
}
