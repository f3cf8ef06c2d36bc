//! The user's conversations as a source of context: messages that match a question, or that were said at the time it asks about.

use async_trait::async_trait;
use jiff::Zoned;
use jiff::tz::TimeZone;
use threadkeep::agent::{ContextSource, ConversationSource, Excerpt, Failure, SourceQuery};
use threadkeep::core::text::{content_terms, indexed_terms};
use threadkeep::dialogue::time::{Direction, TimeExpression, find_times};
use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{Bound, Message, MessageQuery, Role, Scope, Source, ThreadId, ThreadOrder, ThreadQuery, Timestamp};

use crate::evidence::best_first;
use crate::evidence::heading::{DATE_LENGTH, Heading, with_change, with_other_reference, with_reference};
use crate::evidence::question::{Question, Stems, is_light};
use crate::evidence::related::expansion;
use crate::evidence::spelling::is_misspelling;
use crate::evidence::terms::{Match, Terms, has_clock};

/// The maximum number of excerpts from which the excerpts of a time are selected.
const MAX_RECALLED: usize = 200;
/// The maximum number of excerpts that are ranked for a question.
const MAX_RANKED: usize = 40;
/// The maximum number of recent threads that are read for misspelt words.
const MAX_THREADS_READ: usize = 8;
/// The maximum number of threads that are read for changes of their statements.
const MAX_THREADS_OF_CHANGES: usize = 4;
/// The maximum number of threads that are searched for the messages of a time. The most recently changed threads are searched.
const MAX_THREADS: usize = 50;
/// The maximum number of messages that are read per thread.
const MAX_MESSAGES: usize = 100;
/// The number of messages before a message that are searched for the message that it refers to.
const REFERENCE_REACH: u64 = 8;
/// The maximum length of a quoted reference, in characters.
const MAX_REFERENCE: usize = 200;

/// A source that finds messages of the user's conversations. Excerpts state which message they refer to ("Actually it moved to 14
/// May"), and whether a later message changed their statement.
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
            Some(time) => find_of_time(source_query, &question, time).await?,
            None => find_widely(source_query, &question).await?,
        };
        retain_of_day(&mut found, &question, source_query.memory.now());
        for excerpt in &mut found {
            if let Some(text) = referred_text(source_query, excerpt).await {
                excerpt.heading = with_reference(&excerpt.heading, &text);
            }
        }
        add_bare_changes(source_query, &mut found).await?;
        mark_changed(&mut found, &question);
        if question.time_of_messages().is_none() {
            found = best_first(&question, found);
            found.truncate(source_query.limit);
        }
        Ok(found)
    }
}

/// Finds the messages that contain words of the question, words for the same matter, or words that the question misspells.
async fn find_widely(source_query: &SourceQuery<'_>, question: &Question) -> Result<Vec<Excerpt>, Failure> {
    let mut found = ConversationSource.find(&SourceQuery { limit: MAX_RANKED, ..*source_query }).await?;
    let is_exact = |word: &&Stems| {
        let contains = |excerpt: &Excerpt| Terms::new(&excerpt.text).contains(word) == Some(Match::Exact);
        found.iter().filter(|excerpt| !is_question(&excerpt.text)).any(contains)
    };
    let missing: Vec<&Stems> = question.topic.iter().filter(|word| !is_exact(word)).collect();
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
            missing.iter().any(|word| terms.contains(word).is_some())
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

/// Adds the messages that change an excerpt without naming what they change: "me han cambiado la hora, ahora es a las 10:30". Such a
/// message changes the newest earlier statement of its conversation with a value of the same kind.
async fn add_bare_changes(source_query: &SourceQuery<'_>, excerpts: &mut Vec<Excerpt>) -> Result<(), Failure> {
    let mut threads: Vec<ThreadId> = Vec::new();
    for (thread, _) in excerpts.iter().filter_map(|excerpt| excerpt.source.message_position()) {
        if !threads.contains(&thread) && threads.len() < MAX_THREADS_OF_CHANGES {
            threads.push(thread);
        }
    }
    if !threads.contains(&source_query.thread) {
        threads.push(source_query.thread);
    }
    for thread in threads {
        let messages = messages_within(source_query, thread, None, None).await?;
        let quoted = |before: u64| -> Option<&Message> {
            let is_answer = |message: &&Message| message.seq < before && !message.content.sources.is_empty();
            messages.iter().rev().find(is_answer)
        };
        let is_of_user = |message: &&Message| message.content.role == Role::User;
        let statements: Vec<(&Message, String)> =
            messages.iter().filter(is_of_user).map(|message| (message, message.plain_text().into_owned())).collect();
        for (at, (message, text)) in statements.iter().enumerate() {
            let (Some(kind), true) = (value_kind(text), is_bare_change(text) && !refers_back(text)) else { continue };
            let is_changed = |(_, older): &&(&Message, String)| {
                value_kind(older) == Some(kind) && !is_question(older) && !is_bare_change(older)
            };
            let Some(mut change) = Excerpt::of_message(thread, message) else { continue };
            let older = statements[..at].iter().rev().find(is_changed);
            // Without a statement, the change is of what the assistant quoted last.
            let ids: Vec<String> = match older {
                Some((older, _)) => vec![Source::of_message(thread, older).id],
                None => quoted(message.seq)
                    .into_iter()
                    .flat_map(|answer| &answer.content.sources)
                    .map(|it| it.id.clone())
                    .collect(),
            };
            let is_older =
                |excerpt: &Excerpt| ids.contains(&excerpt.source.id) && value_kind(&excerpt.text) == Some(kind);
            let Some(position) = excerpts.iter().position(is_older) else { continue };
            let older_text = &excerpts[position].text;
            let older_text: String = older_text.chars().take(MAX_REFERENCE).collect();
            change.heading = with_reference(&change.heading, &older_text);
            let day = message.created_at.to_string().chars().take(DATE_LENGTH).collect::<String>();
            excerpts[position].heading = with_change(&excerpts[position].heading, &day);
            excerpts.retain(|excerpt| excerpt.source.id != change.source.id);
            excerpts.push(change);
        }
    }
    Ok(())
}

/// The kind of the value of a short statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Time,
    /// A number with this number of digits.
    Number(usize),
}

fn value_kind(text: &str) -> Option<ValueKind> {
    let utterance = Utterance::new(text);
    if !find_times(&utterance).is_empty() || has_clock(text) {
        return Some(ValueKind::Time);
    }
    let digits = |word: &str| word.bytes().filter(u8::is_ascii_digit).count();
    utterance.words().iter().map(|word| digits(&word.folded)).max().filter(|most| *most > 0).map(ValueKind::Number)
}

/// Whether a message reports a change, and contains no word that says of what.
fn is_bare_change(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let times: Vec<_> = find_times(&utterance).into_iter().map(|found| found.words).collect();
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let is_change = |word: &str| CHANGES.iter().any(|change| *change == word || is_misspelling(word, change));
    let is_value =
        |at: usize| times.iter().any(|range| range.contains(&at)) || words[at].contains(|c: char| c.is_ascii_digit());
    let is_empty = |at: usize| {
        let word = words[at];
        is_value(at)
            || is_change(word)
            || CHANGED_VALUES.contains(&word)
            || is_light(word)
            || content_terms(word).is_empty()
    };
    words.iter().any(|word| is_change(word)) && !is_question(text) && (0..words.len()).all(is_empty)
}

/// Words for values that do not say of what: "they changed the time to 10:30".
const CHANGED_VALUES: [&str; 60] = [
    "acaba",
    "acaban",
    "llamar",
    "llamo",
    "llamaron",
    "avisa",
    "avisan",
    "avisaron",
    "mailed",
    "emailed",
    "called",
    "phoned",
    "rang",
    "texted",
    "just",
    "hes",
    "shes",
    "theyre",
    "its",
    "back",
    "been",
    "week",
    "so",
    "al",
    "ahora",
    "dicen",
    "time",
    "times",
    "date",
    "day",
    "hour",
    "hours",
    "code",
    "price",
    "number",
    "room",
    "place",
    "slot",
    "amount",
    "hora",
    "horas",
    "fecha",
    "dia",
    "precio",
    "codigo",
    "numero",
    "sitio",
    "lugar",
    "sala",
    "aula",
    "horario",
    "sorry",
    "ugh",
    "perdon",
    "perdona",
    "wait",
    "ok",
    "same",
    "rescheduled",
    "misma",
];

/// If the question asks what the user did on a day, keeps only the messages that were sent on that day or mention it: "what did I sow on 6 April?"
fn retain_of_day(excerpts: &mut Vec<Excerpt>, question: &Question, now: Timestamp) {
    let asks = (question.asks_about_user || question.asks_past) && !question.asks_what_was_said;
    let Some(time) = question.time.filter(|_| asks) else { return };
    let Some((Some(start), Some(end))) = span(time, now).filter(|(start, _)| start.is_some_and(|start| start <= now))
    else {
        return;
    };
    let is_of_day = |excerpt: &Excerpt| {
        let said_at = excerpt.source.fields.get("said_at").and_then(|at| at.as_str()).and_then(|at| at.parse().ok());
        let terms = indexed_terms(&excerpt.text);
        let mentions_day = question.time_words.iter().all(|stems| stems.iter().any(|stem| terms.contains(stem)));
        mentions_day || said_at.is_some_and(|at: Timestamp| (start..end).contains(&at))
    };
    let is_answer = |excerpt: &Excerpt| {
        let terms = Terms::new(&excerpt.text);
        is_of_day(excerpt) && question.topic.iter().any(|word| terms.contains(word).is_some())
    };
    let has_answer =
        if question.asks_about_user { excerpts.iter().any(is_of_day) } else { excerpts.iter().any(is_answer) };
    if has_answer {
        excerpts.retain(is_of_day);
    }
}

/// Finds the messages that were sent at a time, about a topic or about anything.
async fn find_of_time(
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

/// Returns the user's threads that were changed since a time, the most recent first, without ephemeral ones.
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

/// Returns the text of the message that an excerpt refers to ("it", "actually"): the nearest earlier
/// user message in the thread that can be understood alone.
async fn referred_text(source_query: &SourceQuery<'_>, excerpt: &Excerpt) -> Option<String> {
    Heading::parse(&excerpt.heading).filter(|_| refers_back(&excerpt.text))?;
    let (thread, seq) = excerpt.source.message_position()?;
    let query = MessageQuery {
        before: Some(Bound::Seq(seq)),
        after: Some(Bound::Seq(seq.saturating_sub(REFERENCE_REACH + 1))),
        roles: vec![Role::User],
        ..MessageQuery::newest(usize::try_from(REFERENCE_REACH).unwrap_or(usize::MAX))
    };
    let page = source_query.memory.messages(source_query.scope, thread, &query).await.ok()?;
    let earlier: Vec<String> = page.messages.iter().rev().map(|message| message.plain_text().into_owned()).collect();
    let is_complete = |text: &&String| !refers_back(text) && !content_terms(text).is_empty();
    // "its 2.25 high not 2.1" refers to the statement with that value.
    if let Some(rejected) = rejected_value(&excerpt.text) {
        let has_value = |text: &&String| text.split_whitespace().any(|word| without_marks(word) == rejected);
        if let Some(found) = earlier.iter().find(has_value) {
            return Some(found.chars().take(MAX_REFERENCE).collect());
        }
    }
    let names_person = |text: &&String| is_complete(text) && !names_in(text).is_empty();
    let person = earlier.iter().find(names_person).filter(|_| refers_to_person(&excerpt.text));
    let found = person.or_else(|| earlier.iter().find(is_complete))?;
    Some(found.chars().take(MAX_REFERENCE).collect())
}

/// Returns the value that a message rejects: "2.1" in "its 2.25 high not 2.1".
fn rejected_value(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().map(without_marks).collect();
    let is_rejected = |two: &&[&str]| {
        matches!(two[0].to_lowercase().as_str(), "not" | "no" | "than" | "of" | "instead" | "de")
            && two[1].starts_with(|c: char| c.is_ascii_digit())
    };
    let negates = words
        .iter()
        .any(|word| matches!(word.to_lowercase().as_str(), "not" | "no" | "rather" | "instead" | "vez" | "lugar"));
    words.windows(2).rev().find(is_rejected).filter(|_| negates).map(|two| two[1].to_owned())
}

fn without_marks(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Whether a message refers to a person with a pronoun, and names no person before it.
fn refers_to_person(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let pronoun = utterance.words().iter().position(|word| PERSONAL_PRONOUNS.contains(&word.folded.as_str()));
    pronoun.is_some_and(|at| {
        let before = &utterance.text()[..utterance.words()[at].place.start];
        at < MAX_POSITION_OF_PERSON
            && names_in(before).is_empty()
            && !Utterance::new(before).words().iter().any(|word| PEOPLE.contains(&word.folded.as_str()))
    })
}

/// Words for people, to which a later pronoun of the sentence refers.
const PEOPLE: [&str; 26] = [
    "man",
    "woman",
    "lady",
    "guy",
    "sister",
    "brother",
    "mother",
    "father",
    "mum",
    "mom",
    "dad",
    "wife",
    "husband",
    "son",
    "daughter",
    "friend",
    "boss",
    "doctor",
    "nurse",
    "aunt",
    "uncle",
    "cousin",
    "neighbour",
    "teacher",
    "tutor",
    "gran",
];

const PERSONAL_PRONOUNS: [&str; 6] = ["her", "him", "his", "she", "he", "hers"];
const MAX_POSITION_OF_PERSON: usize = 7;

/// Returns the capitalized words of a text that do not begin a sentence, normalized.
fn names_in(text: &str) -> Vec<String> {
    let utterance = Utterance::new(text);
    let is_name = |at: &usize| {
        let word = &utterance.words()[*at];
        let before = utterance.text()[..word.place.start].trim_end();
        let begins = before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n']);
        !begins && word.folded.len() > 2 && utterance.text()[word.place.start..].starts_with(char::is_uppercase)
    };
    (0..utterance.words().len()).filter(is_name).map(|at| utterance.word(at).to_owned()).collect()
}

/// Whether a message cannot be understood without an earlier message.
fn refers_back(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let starts = |start: &&str| words.starts_with(&start.split(' ').collect::<Vec<_>>());
    // "Remember that my seat …" contains no pronoun.
    words.first() == Some(&"that")
        || refers_to_person(text)
        || rejected_value(text).is_some()
        || words.iter().take(MAX_PRONOUN_POSITION).any(|word| PRONOUNS.contains(word))
        || CORRECTIONS.iter().any(starts)
}

/// A pronoun further from the start usually refers to something in the same message.
const MAX_PRONOUN_POSITION: usize = 4;
const PRONOUNS: [&str; 11] = ["it", "its", "they", "them", "she", "he", "him", "eso", "ella", "ello", "ellos"];
const CORRECTIONS: [&str; 16] = [
    "actually",
    "correction",
    "no wait",
    "wait",
    "sorry",
    "scratch that",
    "change of plan",
    "change of plans",
    "update",
    "i mean",
    "i meant",
    "en realidad",
    "correccion",
    "perdon",
    "cambio de planes",
    "mejor",
];

/// Marks excerpts that a later excerpt changes.
fn mark_changed(excerpts: &mut [Excerpt], question: &Question) {
    let topic: Vec<&String> = question.topic.iter().flat_map(|word| word.iter()).collect();
    let statements: Vec<Option<Statement>> = excerpts.iter().map(Statement::of).collect();
    let change = |index: usize| -> Option<(usize, &Statement)> {
        let older = statements[index].as_ref()?;
        let is_only = |word: &str| {
            statements
                .iter()
                .flatten()
                .filter(|one| one.values != older.values)
                .all(|one| one.says_change || one.said_at > older.said_at || !one.has_word(word))
        };
        let changes =
            |newer: &&(usize, &Statement)| newer.1.changes(older, &topic) || newer.1.updates(older, &topic, &is_only);
        let all = statements.iter().enumerate().filter_map(|(at, statement)| Some((at, statement.as_ref()?)));
        all.collect::<Vec<_>>().iter().filter(changes).max_by_key(|(_, newer)| newer.said_at).copied()
    };
    let changes: Vec<Option<(usize, String)>> =
        (0..excerpts.len()).map(|index| change(index).map(|(at, newer)| (at, newer.day.clone()))).collect();
    for (index, change) in changes.into_iter().enumerate() {
        let Some((newer, day)) = change else { continue };
        // A message does not always change the message that it directly follows.
        let text: String = excerpts[index].text.chars().take(MAX_REFERENCE).collect();
        if let Some(heading) = with_other_reference(&excerpts[newer].heading, &text) {
            excerpts[newer].heading = heading;
        }
        excerpts[index].heading = with_change(&excerpts[index].heading, &day);
    }
}

/// A statement of a conversation.
struct Statement {
    said_at: Timestamp,
    day: String,
    speaker: String,
    /// The terms of its words, except times and numbers.
    terms: Vec<String>,
    /// The terms of the message that it refers to.
    reference: Vec<String>,
    has_reference: bool,
    /// The times and numbers in it.
    values: Vec<String>,
    /// The names in it.
    names: Vec<String>,
    /// Whether it contains a time expression.
    names_time: bool,
    /// Whether it contains a number outside of time expressions.
    names_number: bool,
    /// The conversation.
    thread: Option<ThreadId>,
    says_change: bool,
    says_handover: bool,
    says_end: bool,
}

impl Statement {
    fn of(excerpt: &Excerpt) -> Option<Self> {
        let heading = Heading::parse(&excerpt.heading).filter(|heading| !heading.is_of_assistant())?;
        if is_question(&excerpt.text) {
            return None;
        }
        let utterance = Utterance::new(&*excerpt.text);
        let times: Vec<_> = find_times(&utterance).into_iter().map(|found| found.words).collect();
        let (mut words, mut values, mut names_number) = (Vec::new(), Vec::new(), false);
        for (at, word) in utterance.words().iter().enumerate() {
            let (is_time, is_number) =
                (times.iter().any(|range| range.contains(&at)), word.folded.chars().any(char::is_numeric));
            names_number |= is_number && !is_time;
            let is_value = is_time || is_number;
            if is_value { values.push(word.folded.clone()) } else { words.push(word.folded.as_str()) }
        }
        let all: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
        let (text, all) = (format!(" {} ", words.join(" ")), format!(" {} ", all.join(" ")));
        let is_within = |text: &str, cues: &[&str]| cues.iter().any(|cue| text.contains(&format!(" {cue} ")));
        let says = |cues: &[&str]| is_within(&text, cues);
        Some(Self {
            said_at: excerpt.source.fields.get("said_at")?.as_str()?.parse().ok()?,
            day: heading.day.to_owned(),
            speaker: heading.speaker.to_owned(),
            terms: content_terms(&words.join(" ")).into_iter().flat_map(|(_, stems)| stems).collect(),
            reference: heading.after.map(indexed_terms).unwrap_or_default(),
            has_reference: heading.after.is_some(),
            values,
            names: names_in(&excerpt.text),
            names_time: !times.is_empty() || has_clock(&excerpt.text),
            names_number,
            thread: excerpt.source.message_position().map(|(thread, _)| thread),
            says_change: says(&CHANGES) || is_within(&all, &CHANGES_FROM_A_TIME),
            says_handover: says(&HANDOVERS),
            says_end: says(&ENDS),
        })
    }

    fn has_word(&self, word: &str) -> bool {
        self.terms.iter().chain(&self.values).any(|known| known == word)
    }

    /// Whether this statement reports, in other words, a change of something that an older statement in the same conversation is
    /// about: "the bride moved the wedding to 24 October" after "Renata's wedding is on 17 October". The two share a word of the
    /// question that no earlier statement about another subject contains.
    fn updates(&self, older: &Self, topic: &[&String], is_only: &impl Fn(&str) -> bool) -> bool {
        let is_later = self.said_at > older.said_at && self.speaker == older.speaker;
        let shared_value = self.values.iter().any(|value| older.values.contains(value));
        let has_value = self.values.iter().any(|value| !older.values.contains(value));
        let is_same_kind =
            (!self.names_time || older.names_time) && (!self.names_number || older.names_number || older.names_time);
        let replaces = older.values.is_empty() || shared_value || has_value && is_same_kind;
        let shares = || topic.iter().any(|word| self.has_word(word) && older.has_word(word) && is_only(word));
        // In another conversation, only the old value shows that both statements are about the same subject.
        let is_near = self.thread == older.thread || shared_value;
        is_later && self.says_change && replaces && is_near && shares()
    }

    /// Whether this statement replaces an older one: it refers to the older one, repeats its words with other times or numbers, or
    /// states that something changed. It must answer every question that the older one answers.
    fn changes(&self, older: &Self, topic: &[&String]) -> bool {
        if self.said_at <= older.said_at || self.speaker != older.speaker {
            return false;
        }
        let has_other_name = !older.names.is_empty() && self.names.iter().any(|name| !older.names.contains(name));
        let has_answer = older.values.is_empty()
            || self.says_end
            || (!self.values.is_empty() && self.values != older.values)
            || (self.says_change && has_other_name);
        let shared = |terms: &[String]| older.terms.iter().filter(|term| terms.contains(term)).count();
        // The newer statement must contain every topic word of the question that the older one contains.
        let topic_of_older: Vec<_> = topic.iter().filter(|term| older.terms.contains(term)).collect();
        let shares_topic =
            |terms: &[String]| !topic_of_older.is_empty() && topic_of_older.iter().all(|term| terms.contains(term));
        let refers = self.has_reference && shared(&self.reference) * 2 >= older.terms.len() && !older.terms.is_empty();
        let is_same_sentence = !older.values.is_empty()
            && !older.terms.is_empty()
            && shared(&self.terms) == older.terms.len()
            && older.terms.iter().all(|term| self.terms.contains(term));
        // "Priya handed Falcon over to Tom" changes "Priya leads Falcon" without its verb.
        let shares_some = topic_of_older.iter().any(|term| self.terms.contains(term)) && shared(&self.terms) > 1;
        let says_change =
            (self.says_change || self.says_end) && shares_topic(&self.terms) || self.says_handover && shares_some;
        has_answer && (refers || is_same_sentence || says_change)
    }
}

/// Words that report a change.
const CHANGES: [&str; 93] = [
    "subido",
    "bajado",
    "dropped to",
    "risen to",
    "cambia",
    "cambian",
    "desde hoy",
    "desde manana",
    "desde ahora",
    "a partir de",
    "from today",
    "from tomorrow",
    "as of",
    "equivoque",
    "me equivoque",
    "i was wrong",
    "corrijo",
    "made a mistake",
    "turns out",
    "remeasured",
    "changes",
    "swaps",
    "shifts to",
    "revised",
    "cambiaran",
    "trasladaron",
    "pasa al",
    "now",
    "actually",
    "instead",
    "moved",
    "changed",
    "change",
    "switched",
    "took over",
    "takes over",
    "handed",
    "handed over",
    "replaced",
    "replaces",
    "rescheduled",
    "postponed",
    "after all",
    "correction",
    "update",
    "updated",
    "from now on",
    "ahora",
    "en realidad",
    "cambio",
    "cambiaron",
    "movio",
    "movieron",
    "se movio",
    "paso a",
    "reemplazo",
    "pospuso",
    "aplazo",
    "mejor",
    "correccion",
    "al final",
    "moves",
    "swap",
    "swapped",
    "new time",
    "new date",
    "sino",
    "cambiado",
    "movido",
    "movimos",
    "cambiamos",
    "cambie",
    "quedo en",
    "adelanto",
    "pasaron a",
    "slips",
    "slipped",
    "pushed",
    "delayed",
    "bumped",
    "put back",
    "brought forward",
    "shifted",
    "extended",
    "gone up",
    "went up",
    "raised",
    "sube",
    "subio",
    "subieron",
    "ya son",
    "se retrasa",
    "se adelanta",
];
/// Words that report a change from a time on. They are time expressions, too.
const CHANGES_FROM_A_TIME: [&str; 9] = [
    "desde hoy",
    "desde manana",
    "desde ahora",
    "a partir de",
    "from today",
    "from tomorrow",
    "as of",
    "from now on",
    "starting",
];
/// Words that report a transfer from one person to another.
const HANDOVERS: [&str; 12] = [
    "took over",
    "takes over",
    "taken over",
    "handed",
    "hands",
    "passed",
    "replaced",
    "replaces",
    "succeeds",
    "reemplaza",
    "releva",
    "sustituye",
];
/// Words that report that something is no longer true.
const ENDS: [&str; 12] = [
    "cancelled",
    "canceled",
    "no longer",
    "not anymore",
    "anymore",
    "called off",
    "is off",
    "cancelo",
    "cancelada",
    "cancelado",
    "ya no",
    "se cancela",
];
