//! What a turn does: the intent, the query with the topic carried over, the filters, and the sources at hand.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use threadkeep::core::StoreError;
use threadkeep::{Map, Message, Role, Scope};

use crate::answer;
use crate::clave::{References, fold_text};
use crate::corpus::{Corpus, Item};
use crate::english;
use crate::filters::{self, Filters};
use crate::history::{self, MAX_SOURCES};
use crate::intent::{self, Intent};
use crate::reference;
use crate::search::{FoundItem, GENERIC, SearchRequest, content_words, matches};
use crate::thesaurus;

mod query;
mod reuse;

use query::{Topic, search};
use reuse::reuse;

/// The field of an answer's data that contains the search query.
pub(crate) const QUERY: &str = "consulta";
/// The field of an answer's data that contains the filters.
pub(crate) const FILTERS: &str = "filtros";
/// The field of an answer's data that contains the numbers of the sources that it was about.
pub(crate) const FOCUS: &str = "foco";
/// The field of an answer's data that contains the numbers of the sources that it cites, if not all.
pub(crate) const CITED: &str = "citadas";
/// The maximum number of sources of an answer.
pub(crate) const MAX_ANSWER_SOURCES: usize = 5;
/// The minimum number of words of a question that a source which no answer cited must contain to be preferred to the cited ones.
const MIN_ELSEWHERE: usize = 3;

/// The same number if no cited source is relevant to the question, counting related words.
const MIN_RELATED: usize = 2;

/// The plan of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Plan {
    /// The plan with the other intent, if the message is ambiguous and there is a decider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alternative: Option<Box<Plan>>,
    /// What can decide between the plans.
    #[serde(skip_serializing_if = "Deciders::is_empty")]
    pub(crate) deciders: Deciders,
    pub(crate) intent: Intent,
    pub(crate) reason: String,
    pub(crate) wants_more: bool,
    /// Whether the message is not about law.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_off_topic: bool,
    /// The message with its misspelt words corrected.
    pub(crate) question: String,
    /// The query, with the topic carried over.
    pub(crate) query: String,
    /// Whether the message contains more than filters.
    pub(crate) has_own_words: bool,
    /// Whether a message that contains only filters asks about the topic alone: `¿ni siquiera aisladas?`
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keeps_topic: bool,
    pub(crate) filters: Filters,
    /// Words of the branch of law that the message names, if that is only part of a subject: `algo de familia`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) branch: String,
    /// The filters of the message itself, without those of the topic.
    pub(crate) own_filters: Filters,
    pub(crate) registros: Vec<i64>,
    pub(crate) claves: Vec<(String, Option<u8>)>,
    /// The keys of everything that was cited in the conversation.
    pub(crate) cited: BTreeSet<String>,
    /// The sources at hand, for a reuse.
    pub(crate) sources: Vec<FoundItem>,
    /// The 1-based numbers of the sources that the message refers to.
    pub(crate) focus: Vec<usize>,
    /// Whether the message asks for facts about a source that no earlier answer cited: `la clave de la tesis del arraigo`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) asks_facts: bool,
    /// The text of the last answer.
    pub(crate) previous: String,
    /// The registros that were cited before.
    pub(crate) discussed: BTreeSet<i64>,
    /// The number of messages before this turn.
    pub(crate) messages: u64,
    pub(crate) corpus_as_of: String,
}

/// What decides the intent of an ambiguous message. If nothing does, the rules decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Deciders {
    /// The nearness of the query to the sources at hand, which only an embedder can measure.
    pub(crate) nearness: bool,
    /// A language model.
    pub(crate) model: bool,
}

impl Deciders {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Plans a turn after a conversation, oldest message first. An ambiguous message gets a plan for each intent if there are deciders.
pub(crate) async fn plan(
    corpus: &Corpus,
    scope: &Scope,
    question: &str,
    messages: &[Message],
    message_count: u64,
    deciders: Deciders,
) -> Result<Plan, StoreError> {
    let historical = history::extract_historical_sources(messages, MAX_SOURCES);
    let last = last_answer(messages);
    let last_keys: Vec<String> =
        last.iter().flat_map(|answer| &answer.content.sources).filter_map(history::key).collect();
    let items = corpus.by_key(scope, &historical.iter().map(|source| source.key.clone()).collect::<Vec<_>>()).await?;
    let past = with_texts(history::past_messages(messages), &items, messages);
    let question = &corrected(corpus, scope, question, &past).await?;
    let mut classified = intent::classify_corrected(question, &past);
    if classified.is_off_topic && !past.iter().any(|message| !message.sources.is_empty()) {
        // The lists may lack words that the corpus contains.
        let words = corpus.known_words(scope, question).await?;
        if !words.is_empty() && words.iter().all(|(_, is_known)| *is_known) {
            classified = intent::Classification { intent: Intent::NewSearch, is_off_topic: false, ..classified };
        }
    }
    if classified.intent == Intent::Reuse && intent::selects_one_source(question) {
        let filters = filters::split(question).filters;
        if !items.iter().filter_map(Item::tesis).any(|tesis| filters.passes(tesis)) {
            classified.intent = Intent::NewSearch;
        }
    }
    if classified.intent == Intent::Reuse
        && classified.is_by_topic
        && is_answered_elsewhere(corpus, scope, question, &items).await?
    {
        classified.intent = Intent::NewSearch;
    }
    let asks_more = classified.wants_more || !filters::split(question).filters.is_empty();
    let described = match classified.intent {
        Intent::Reuse => described_elsewhere(corpus, scope, question, &items).await?,
        Intent::NewSearch if !asks_more => described_elsewhere(corpus, scope, question, &items).await?,
        _ => None,
    };
    if described.is_some() {
        classified.intent = Intent::NewSearch;
    }
    let description = corpus.description(scope).await?.unwrap_or_default();
    let cited = messages.iter().flat_map(|message| &message.content.sources).filter_map(history::key).collect();
    let base = Plan {
        intent: classified.intent,
        reason: classified.reason.to_owned(),
        wants_more: classified.wants_more,
        is_off_topic: classified.is_off_topic,
        question: question.clone(),
        previous: last.map(|answer| answer.plain_text().into_owned()).unwrap_or_default(),
        discussed: history::extract_discussed_tesis(messages),
        messages: message_count,
        corpus_as_of: description.as_of,
        cited,
        ..Plan::default()
    };
    let topic = Topic::of(messages);
    let with_intent = |intent: Intent| {
        let mut plan = Plan { intent, ..base.clone() };
        match intent {
            Intent::None => {}
            Intent::Reuse => {
                plan.query.clone_from(&topic.query);
                plan.filters.clone_from(&topic.filters);
                reuse(&mut plan, question, &historical, &items, &last_keys, messages);
            }
            Intent::NewSearch => match &described {
                Some(description) => {
                    plan.asks_facts = true;
                    search(&mut plan, description, &Topic::default());
                }
                None => search(&mut plan, intent::after_rejection(question).unwrap_or(question), &topic),
            },
        }
        plan
    };
    let other = match classified.intent {
        Intent::Reuse => Some(Intent::NewSearch),
        Intent::NewSearch => Some(Intent::Reuse),
        Intent::None => None,
    };
    // A search embeds its query anyway, so measuring nearness before it costs nothing; before a reuse, it would.
    let nearness = deciders.nearness && classified.intent == Intent::NewSearch;
    let deciders = Deciders { nearness, ..deciders };
    let other = other.filter(|_| !deciders.is_empty() && classified.is_ambiguous && described.is_none());
    let alternative = other.map(|intent| Box::new(with_intent(intent)));
    let deciders = if alternative.is_some() { deciders } else { Deciders::default() };
    Ok(Plan { alternative, deciders, ..with_intent(classified.intent) })
}

/// Whether a source that no earlier answer cited contains more words of a question than every cited one.
async fn is_answered_elsewhere(
    corpus: &Corpus,
    scope: &Scope,
    question: &str,
    items: &[Item],
) -> Result<bool, StoreError> {
    if answer::asks_attribute(question) || content_words(question).split_whitespace().count() < MIN_ELSEWHERE {
        return Ok(false);
    }
    let request = SearchRequest { query: question.to_owned(), limit: MAX_ANSWER_SOURCES, ..SearchRequest::default() };
    let found = corpus.search(scope, &request).await?;
    let keys: Vec<String> = items.iter().map(Item::key).collect();
    let text = |item: &Item| format!("{}\n{}", item.title(), item.text());
    let best = |texts: &[String]| matches(question, texts).into_iter().max().unwrap_or(0);
    let new: Vec<String> =
        found.iter().filter(|found| !keys.contains(&found.item.key())).map(|found| text(&found.item)).collect();
    let known: Vec<String> = items.iter().map(text).collect();
    let related = |texts: &[String]| texts.iter().map(|text| related_matches(question, text)).max().unwrap_or(0);
    let (new_count, known_count) = (best(&new), best(&known));
    // No cited source is even relevant.
    let is_other = !found.is_empty()
        && new.len() == found.len()
        && related(&new) >= MIN_RELATED
        && related(&new) > related(&known);
    Ok(new_count > known_count && new_count >= MIN_ELSEWHERE || is_other)
}

/// Returns how many words of a question a text contains, also as related words.
fn related_matches(question: &str, text: &String) -> usize {
    let contains = |words: &str| matches(words, std::slice::from_ref(text))[0] > 0;
    let content = content_words(question);
    let specific = content.split_whitespace().filter(|word| !GENERIC.contains(word));
    specific.filter(|word| contains(word) || contains(&thesaurus::related(word))).count()
}

/// Returns the description of a source that no earlier answer cited, if a message asks for facts about it and the corpus contains it.
async fn described_elsewhere(
    corpus: &Corpus,
    scope: &Scope,
    question: &str,
    items: &[Item],
) -> Result<Option<String>, StoreError> {
    let descriptions = reference::descriptions(question);
    let is_known = || !reference::described(&descriptions, &items.iter().collect::<Vec<_>>()).is_empty();
    let asks = References::of(question).is_empty()
        && answer::asks_attribute(question)
        && !intent::names_source(question)
        && reference::position_in_conversation(question, items.len()).is_none()
        && !is_known();
    for description in descriptions.iter().filter(|description| asks && description.is_specific) {
        let request =
            SearchRequest { query: description.text(), limit: MAX_ANSWER_SOURCES, ..SearchRequest::default() };
        let found = corpus.search(scope, &request).await?;
        if found.first().is_some_and(|found| description.is_of(&found.item)) {
            return Ok(Some(description.text()));
        }
    }
    Ok(None)
}

/// Returns a message with its misspelt words corrected. A word that the corpus contains is not misspelt.
async fn corrected(
    corpus: &Corpus,
    scope: &Scope,
    message: &str,
    past: &[intent::PastMessage],
) -> Result<String, StoreError> {
    let translated = english::translated(message);
    let message = translated.as_deref().unwrap_or(message);
    let corrected = intent::corrected(message, past);
    let (own, other) = (fold_text(message), fold_text(&corrected));
    for (typed, _) in own.split_whitespace().zip(other.split_whitespace()).filter(|(typed, word)| typed != word) {
        if corpus.known_words(scope, typed).await?.iter().any(|(_, is_known)| *is_known) {
            return Ok(message.to_owned());
        }
    }
    Ok(corrected)
}

/// Adds the texts of the sources to the messages that cite them, so that words of a source are not another topic.
fn with_texts(mut past: Vec<intent::PastMessage>, items: &[Item], messages: &[Message]) -> Vec<intent::PastMessage> {
    if let Some(answer) = past.iter_mut().rev().find(|message| !message.sources.is_empty()) {
        let keys: Vec<String> =
            last_answer(messages).iter().flat_map(|answer| &answer.content.sources).filter_map(history::key).collect();
        let texts = items.iter().filter(|item| keys.contains(&item.key())).map(|item| item.text().to_owned());
        answer.sources.extend(texts);
    }
    past
}

/// Returns the last answer with sources.
fn last_answer(messages: &[Message]) -> Option<&Message> {
    let is_answer = |message: &&Message| {
        message.content.role == Role::Assistant
            && message.content.sources.iter().any(|source| history::key(source).is_some())
    };
    messages.iter().rev().find(is_answer)
}

fn data(message: &Message) -> Option<Map> {
    message.content.data.as_ref()?.read().ok()
}
