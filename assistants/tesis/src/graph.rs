//! The graph: understand the message, with a model if it is ambiguous, then answer from the sources at hand, or search until the sources suffice.

use threadkeep::agent::{Failure, MAX_ITERATIONS};
use threadkeep::graph::{END, Graph, Input, ModelRequest, Node, Output, START, ToolOutcome, state};
use threadkeep::{ChatAnswer, JsonText, StoreError, ToolCall, Value};

use crate::answer;
use crate::briefing::{self, Briefing, Task};
use crate::citations::remove_unknown_citations;
use crate::filters::Exclusions;
use crate::intent::{self, Intent};
use crate::plan::{CITED, Deciders, FILTERS, FOCUS, MAX_ANSWER_SOURCES, Plan, QUERY};
use crate::search::{FoundItem, content_words};
use crate::tool::{COMPARE, CompareArguments, Nearness, SEARCH, SearchArguments, SearchResult};

/// The field of the graph's input that contains the position of the message.
pub(crate) const QUESTION_SEQ: &str = "question_seq";
/// The activity that reads the conversation and plans the turn.
pub(crate) const UNDERSTAND: &str = "understand";
/// The default maximum number of searches.
pub(crate) const DEFAULT_ITERATIONS: u64 = 5;
/// The upper limit for the maximum number of searches.
pub(crate) const LARGEST_ITERATIONS: u64 = 10;
/// The exit reason for a message that is not about law.
const OFF_TOPIC: &str = "fuera_de_tema";
/// The minimum number of letters and digits that must remain of an answer after citations were removed.
const MIN_ANSWER: usize = 40;

state! {
    /// The state of a turn.
    pub(crate) struct TurnState (update TurnStateUpdate) {
        /// The message.
        replace question: String,
        /// Its position in the thread.
        optional seq: u64,
        /// The maximum number of searches.
        replace max_iterations: u64,
        /// What the turn does.
        replace plan: Plan,
        /// The sources of the answer.
        replace found: Vec<FoundItem>,
        /// The result of the last search.
        replace result: SearchResult,
        /// The search queries so far.
        append queries: String,
        /// The next query, as requested by a model.
        replace next_query: String,
        /// Why the turn stopped searching.
        replace exit_reason: String,
        /// The reasons that models and rules gave for their decisions.
        append reasoning: String,
        /// The answer.
        replace reply: String,
    }
}

/// Builds the graph.
pub(crate) fn tesis_graph() -> Graph<TurnState> {
    Graph::<TurnState>::builder("tesis", 3, begin)
        .max_steps(5 + 2 * LARGEST_ITERATIONS as u32 + 4)
        .node("understand", Node::activity(UNDERSTAND, plan_input, apply_plan).or_else(without_plan))
        .node("compare", Node::tools(compare_calls, apply_comparison))
        .node("classify", Node::model(classification_request, apply_classification).or_else(without_classification))
        .node("search", Node::tools(search_calls, apply_results))
        .node("judge", Node::model(judgement_request, apply_judgement).or_else(without_judgement))
        .node("answer", Node::model(answer_request, apply_answer).or_else(without_answer))
        .edge(START, "understand")
        .branch("understand", ["compare", "classify", "search", "judge", END], |state| {
            if state.plan.deciders.nearness { "compare" } else { after_comparison(state) }
        })
        .branch("compare", ["classify", "search", "judge", END], after_comparison)
        .branch("classify", ["search", "judge", END], first_step)
        .edge("search", "judge")
        .branch("judge", ["search", "answer", END], after_judgement)
        .edge("answer", END)
        .finish(finish)
        .expect("the graph is complete, which a test checks")
}

fn after_comparison(state: &TurnState) -> &'static str {
    if state.plan.deciders.model { "classify" } else { first_step(state) }
}

fn first_step(state: &TurnState) -> &'static str {
    match state.plan.intent {
        Intent::None => END,
        Intent::Reuse => "judge",
        Intent::NewSearch => "search",
    }
}

fn begin(input: &Input) -> TurnState {
    let number = |name: &str| input.extra_input.get(name).and_then(Value::as_u64);
    TurnState {
        question: input.question.clone(),
        seq: number(QUESTION_SEQ),
        max_iterations: number(MAX_ITERATIONS).unwrap_or(DEFAULT_ITERATIONS).clamp(1, LARGEST_ITERATIONS),
        ..TurnState::default()
    }
}

/// The input of the activity that plans the turn.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct UnderstandInput {
    pub(crate) question: String,
    pub(crate) seq: Option<u64>,
}

fn plan_input(state: &TurnState) -> Result<JsonText, StoreError> {
    JsonText::of(&UnderstandInput { question: state.question.clone(), seq: state.seq })
}

fn apply_plan(_: &TurnState, plan: JsonText) -> TurnStateUpdate {
    let plan: Plan = plan.read().unwrap_or_default();
    TurnStateUpdate { reasoning: vec![plan.reason.clone()], ..start_plan(plan) }
}

/// Starts a plan. A reuse starts with the sources at hand.
fn start_plan(plan: Plan) -> TurnStateUpdate {
    let (found, exit_reason) = match plan.intent {
        Intent::Reuse => (Some(plan.sources.clone()), Some("fuentes_reutilizadas".to_owned())),
        Intent::None if plan.is_off_topic => (None, Some(OFF_TOPIC.to_owned())),
        Intent::None => (None, Some("cortesia".to_owned())),
        Intent::NewSearch => (None, None),
    };
    TurnStateUpdate { plan: Some(plan), found, exit_reason, ..TurnStateUpdate::default() }
}

/// Returns the call that compares an ambiguous message with the sources at hand.
fn compare_calls(state: &TurnState) -> Vec<ToolCall> {
    let reuse = state.plan.alternative.as_deref();
    let keys = reuse.map(|plan| plan.sources.iter().map(|found| found.item.key()).collect()).unwrap_or_default();
    let arguments = CompareArguments { consulta: state.plan.query.clone(), fuentes: keys };
    vec![call("comparar-1", COMPARE, &arguments)]
}

fn apply_comparison(state: &TurnState, results: Vec<ToolOutcome>) -> TurnStateUpdate {
    let outcome = results.into_iter().next();
    let nearness = outcome.and_then(|outcome| outcome.value?.read::<Nearness>().ok());
    let reason = match nearness {
        Some(Nearness::SameTopic) => "cercanía de temas: lo más cercano a la pregunta es una fuente ya citada",
        Some(Nearness::OtherTopic) => "cercanía de temas: las fuentes citadas no están entre lo más cercano",
        Some(Nearness::Undecided) => "cercanía de temas: no es concluyente",
        None => "cercanía de temas: no disponible",
    };
    let reasoning = vec![reason.to_owned()];
    match (nearness, &state.plan.alternative) {
        (Some(Nearness::SameTopic), Some(reuse)) => TurnStateUpdate { reasoning, ..start_plan((**reuse).clone()) },
        (Some(Nearness::OtherTopic), _) => keep_plan(state, reason.to_owned()),
        _ => {
            let deciders = Deciders { nearness: false, ..state.plan.deciders };
            let plan = Plan { deciders, ..state.plan.clone() };
            TurnStateUpdate { plan: Some(plan), reasoning, ..TurnStateUpdate::default() }
        }
    }
}

/// Asks whether an ambiguous message is about the sources at hand.
fn classification_request(state: &TurnState) -> ModelRequest {
    let plans = [Some(&state.plan), state.plan.alternative.as_deref()];
    let reuse = plans.into_iter().flatten().find(|plan| plan.intent == Intent::Reuse);
    let sources = reuse.map(|plan| plan.sources.as_slice()).unwrap_or_default();
    let briefing = Briefing { anterior: state.plan.previous.clone(), ..state_briefing(state, Task::Clasificar) };
    silent_request(&briefing, sources)
}

fn apply_classification(state: &TurnState, answer: ChatAnswer) -> TurnStateUpdate {
    let Some((intent, reason)) = briefing::classification(&answer.text()) else {
        return keep_plan(state, "el modelo no decidió la intención".to_owned());
    };
    let reason = if reason.is_empty() { "el modelo decidió la intención".to_owned() } else { reason };
    match state.plan.alternative.clone() {
        Some(other) if other.intent == intent => {
            // The exit reason and the sources of the discarded plan no longer count.
            let found = Some(if intent == Intent::Reuse { other.sources.clone() } else { Vec::new() });
            let exit_reason = (intent == Intent::NewSearch).then(String::new);
            let started = start_plan(*other);
            let exit_reason = started.exit_reason.clone().or(exit_reason);
            TurnStateUpdate { found, exit_reason, reasoning: vec![reason], ..started }
        }
        _ => keep_plan(state, reason),
    }
}

/// If the model fails, the rules decide.
fn without_classification(state: &TurnState, failure: &Failure) -> TurnStateUpdate {
    keep_plan(state, format!("el modelo no decidió la intención: {}", failure.message))
}

fn keep_plan(state: &TurnState, reason: String) -> TurnStateUpdate {
    let plan = Plan { alternative: None, deciders: Deciders::default(), ..state.plan.clone() };
    TurnStateUpdate { plan: Some(plan), reasoning: vec![reason], ..TurnStateUpdate::default() }
}

/// If the conversation cannot be read, the message is searched as it is.
fn without_plan(state: &TurnState, failure: &Failure) -> TurnStateUpdate {
    let plan = Plan { query: state.question.clone(), reason: failure.message.clone(), ..Plan::default() };
    TurnStateUpdate { plan: Some(plan), ..TurnStateUpdate::default() }
}

fn search_calls(state: &TurnState) -> Vec<ToolCall> {
    let plan = &state.plan;
    let is_first = state.queries.is_empty();
    let arguments = SearchArguments {
        consulta: if is_first { plan.query.clone() } else { state.next_query.clone() },
        filtros: plan.filters.clone(),
        filtros_propios: plan.own_filters.clone(),
        rama: plan.branch.clone(),
        registros: if is_first { plan.registros.clone() } else { Vec::new() },
        claves: if is_first { plan.claves.clone() } else { Vec::new() },
        citadas: plan.cited.clone(),
        solo_nuevas: plan.wants_more,
        con_palabras: plan.has_own_words,
        solo_del_tema: plan.keeps_topic,
    };
    vec![call(&format!("buscar-{}", state.queries.len() + 1), SEARCH, &arguments)]
}

fn call(id: &str, name: &str, arguments: &impl serde::Serialize) -> ToolCall {
    let arguments = JsonText::of(arguments).unwrap_or_else(|_| JsonText::from(&Value::Object(threadkeep::Map::new())));
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments }
}

fn apply_results(state: &TurnState, results: Vec<ToolOutcome>) -> TurnStateUpdate {
    let outcome = results.into_iter().next();
    let result = outcome.as_ref().and_then(|outcome| outcome.value.as_ref()?.read::<SearchResult>().ok());
    let failure = outcome.filter(|outcome| outcome.is_error).map(|outcome| outcome.output);
    let query = if state.queries.is_empty() { state.plan.query.clone() } else { state.next_query.clone() };
    let result = result.unwrap_or_default();
    // A later search adds to the sources of the earlier ones.
    let mut found = state.found.clone();
    let known: Vec<String> = found.iter().map(|found| found.item.key()).collect();
    found.extend(result.found.iter().filter(|found| !known.contains(&found.item.key())).cloned());
    found.truncate(MAX_ANSWER_SOURCES);
    TurnStateUpdate {
        found: Some(found),
        result: Some(result),
        queries: vec![query],
        reasoning: failure.into_iter().collect(),
        ..TurnStateUpdate::default()
    }
}

fn judgement_request(state: &TurnState) -> ModelRequest {
    ask(state, Task::Evaluar)
}

fn answer_request(state: &TurnState) -> ModelRequest {
    ask(state, Task::Responder)
}

fn ask(state: &TurnState, task: Task) -> ModelRequest {
    silent_request(&state_briefing(state, task), &state.found)
}

/// Creates a request for an answer that is not streamed, because its citations are checked first.
fn silent_request(briefing: &Briefing, sources: &[FoundItem]) -> ModelRequest {
    let request = ModelRequest { is_reply: false, ..ModelRequest::reply(&[]) };
    let request = request.with_tools(threadkeep::graph::ToolSelection::None);
    request.with_instructions(briefing::instructions(briefing, sources))
}

fn state_briefing(state: &TurnState, task: Task) -> Briefing {
    let plan = &state.plan;
    Briefing {
        tarea: task,
        pregunta: if plan.question.is_empty() { state.question.clone() } else { plan.question.clone() },
        consulta: query(state),
        foco: plan.focus.clone(),
        reutiliza: plan.intent == Intent::Reuse,
        exacta: state.result.is_look_up && state.result.missing.is_empty(),
        pide_datos: plan.asks_facts,
        anterior: if plan.intent == Intent::Reuse { plan.previous.clone() } else { String::new() },
        corpus_al: plan.corpus_as_of.clone(),
        avisos: notices(state),
    }
}

/// Returns the query of the turn: the last search query, or the topic of the reused sources.
fn query(state: &TurnState) -> String {
    state.queries.last().cloned().unwrap_or_else(|| state.plan.query.clone())
}

/// Returns what the answer must mention.
fn notices(state: &TurnState) -> Vec<String> {
    let (plan, result) = (&state.plan, &state.result);
    let mut notices = Vec::new();
    if !result.missing.is_empty() {
        notices.push(format!("No encontré en el corpus {}.", result.missing.join(" ni ")));
    }
    if !result.corrected.is_empty() && !state.found.is_empty() {
        notices.push(format!("Busqué «{}».", result.corrected));
    }
    if result.only_known {
        notices.push(match plan.wants_more {
            true => "No encontré más tesis sobre el tema: las del corpus que lo tratan ya se citaron.".to_owned(),
            false => "Solo encontré tesis que ya se citaron en esta conversación.".to_owned(),
        });
    } else if plan.wants_more && state.found.is_empty() {
        notices.push("No encontré más tesis sobre el tema en el corpus.".to_owned());
    }
    if result.without_topic {
        let (topic, filters) = (content_words(&plan.query), plan.own_filters.describe());
        let about =
            if topic.is_empty() { "Con los filtros anteriores".to_owned() } else { format!("Sobre «{topic}»") };
        notices.push(format!(
            "{about} no encontré tesis que además cumplan el filtro {filters}; estas solo cumplen ese filtro."
        ));
    }
    if result.without_filters {
        notices.push("Ninguna tesis del corpus indica esa materia; busqué la palabra en los textos.".to_owned());
    } else if state.found.is_empty() && !plan.filters.is_empty() && notices.is_empty() {
        let words = content_words(&plan.query);
        let about = if words.is_empty() { String::new() } else { format!(" sobre «{}»", plan.query.trim()) };
        notices.push(format!("No encontré en el corpus tesis{about} con el filtro {}.", plan.filters.describe()));
    }
    notices.extend(unknown_facts(&plan.filters.without, &state.found));
    if result.embedder_failed {
        notices.push("La búsqueda por significado no está disponible; busqué por palabras.".to_owned());
    }
    notices
}

/// Returns the remark that sources do not state whether they are of an excluded kind.
fn unknown_facts(without: &Exclusions, found: &[FoundItem]) -> Option<String> {
    let unknown = |(index, found): (usize, &FoundItem)| {
        let facts = found.item.tesis().map(|tesis| without.unknown(tesis).join(" ni ")).unwrap_or_default();
        (!facts.is_empty()).then(|| format!("la fuente {} no indica {facts}", index + 1))
    };
    let remarks: Vec<String> = found.iter().enumerate().filter_map(unknown).collect();
    (!remarks.is_empty()).then(|| format!("El corpus no permite excluir todo: {}.", remarks.join("; ")))
}

fn apply_judgement(state: &TurnState, answer: ChatAnswer) -> TurnStateUpdate {
    let judged = briefing::judgement(&answer.text());
    let reasoning: Vec<String> = Some(judged.reason).filter(|reason| !reason.is_empty()).into_iter().collect();
    let stop = |exit_reason: &str| TurnStateUpdate {
        exit_reason: Some(exit_reason.to_owned()),
        next_query: Some(String::new()),
        reasoning: reasoning.clone(),
        ..TurnStateUpdate::default()
    };
    if state.plan.intent == Intent::Reuse {
        return TurnStateUpdate { reasoning, ..TurnStateUpdate::default() };
    }
    if judged.decision == "SATISFECHO" {
        return stop(if state.found.is_empty() { "sin_siguiente_consulta" } else { "llm_satisfecho" });
    }
    let Some(query) = judged.query.filter(|query| !query.trim().is_empty()) else {
        return stop("sin_siguiente_consulta");
    };
    if state.queries.iter().any(|known| content_words(known) == content_words(&query)) {
        return stop("consulta_redundante");
    }
    if state.queries.len() as u64 >= state.max_iterations {
        return stop("max_iteraciones");
    }
    TurnStateUpdate { next_query: Some(query), reasoning, ..TurnStateUpdate::default() }
}

fn without_judgement(_: &TurnState, failure: &Failure) -> TurnStateUpdate {
    TurnStateUpdate {
        exit_reason: Some("modelo_no_disponible".to_owned()),
        next_query: Some(String::new()),
        reasoning: vec![format!("el modelo no evaluó las fuentes: {}", failure.message)],
        ..TurnStateUpdate::default()
    }
}

fn after_judgement(state: &TurnState) -> &'static str {
    match (state.next_query.is_empty(), state.found.is_empty()) {
        (false, _) => "search",
        (true, true) => END,
        (true, false) => "answer",
    }
}

fn apply_answer(_: &TurnState, answer: ChatAnswer) -> TurnStateUpdate {
    TurnStateUpdate { reply: Some(answer.text()), ..TurnStateUpdate::default() }
}

/// If the model fails, the answer quotes the sources.
fn without_answer(state: &TurnState, failure: &Failure) -> TurnStateUpdate {
    let note = "El modelo de lenguaje no está disponible, así que cito las fuentes.";
    TurnStateUpdate {
        reply: Some(format!("{note}\n\n{}", quotation(state))),
        exit_reason: Some("modelo_no_disponible".to_owned()),
        reasoning: vec![format!("el modelo no respondió: {}", failure.message)],
        ..TurnStateUpdate::default()
    }
}

fn quotation(state: &TurnState) -> String {
    let lines: Vec<_> =
        state.found.iter().enumerate().map(|(index, found)| briefing::SourceLine::of(index + 1, found)).collect();
    answer::quote(&state_briefing(state, Task::Responder), &lines)
}

fn finish(state: &TurnState) -> Output {
    let reply = match state.plan.intent {
        Intent::None if state.plan.is_off_topic => answer::OTHER_MATTER.to_owned(),
        Intent::None => answer::courtesy(&state.question),
        _ if is_off_topic(state) => answer::OFF_TOPIC.to_owned(),
        _ if state.found.is_empty() => answer::nothing_found(&state_briefing(state, Task::Responder)),
        _ => checked_reply(state),
    };
    let is_empty = state.plan.intent == Intent::None;
    let sources = if is_empty {
        Vec::new()
    } else {
        state.found.iter().take(MAX_ANSWER_SOURCES).map(FoundItem::source).collect()
    };
    Output { sources, data: JsonText::of(&data(state)).ok(), ..Output::reply(reply) }
}

/// Whether the message contains no word of the corpus and does not explicitly ask for a search.
fn is_off_topic(state: &TurnState) -> bool {
    let plan = &state.plan;
    state.found.is_empty()
        && state.result.is_unknown
        && plan.filters.is_empty()
        && !plan.corpus_as_of.is_empty()
        && state.result.missing.is_empty()
        && !intent::states_search(&state.question)
}

/// Returns the answer without the citations that no source contains. If too little remains, the sources are quoted instead.
fn checked_reply(state: &TurnState) -> String {
    let (checked, removed) = remove_unknown_citations(&state.reply, &state.found);
    let is_enough = checked.chars().filter(|c| c.is_alphanumeric()).count() >= MIN_ANSWER;
    if removed && !is_enough || checked.is_empty() { quotation(state) } else { checked }
}

/// Returns the numbers of the sources at hand that the answer cites, if it does not cite all.
fn cited(state: &TurnState) -> Vec<usize> {
    if state.plan.intent != Intent::Reuse {
        return Vec::new();
    }
    let is_cited = |found: &FoundItem| match found.item.tesis() {
        Some(tesis) => state.reply.contains(&tesis.id_tesis.to_string()),
        None => state.reply.contains(&found.item.title()),
    };
    let cited: Vec<usize> = state.found.iter().zip(1..).filter(|(found, _)| is_cited(found)).map(|(_, n)| n).collect();
    if cited.len() < state.found.len() { cited } else { Vec::new() }
}

/// Returns the data that is stored with the answer: the parts of a run's result that `Agent` does not compute itself.
fn data(state: &TurnState) -> Value {
    let plan = &state.plan;
    let found: &[FoundItem] = match plan.intent {
        Intent::None => &[],
        _ => &state.found[..state.found.len().min(MAX_ANSWER_SOURCES)],
    };
    let is_off_topic = is_off_topic(state);
    let mut discussed = plan.discussed.clone();
    discussed.extend(found.iter().filter_map(|found| found.item.tesis()).map(|tesis| tesis.id_tesis));
    serde_json::json!({
        "intencion": if is_off_topic { Intent::None } else { plan.intent }.label(),
        QUERY: if plan.intent == Intent::None || is_off_topic { String::new() } else { query(state) },
        FILTERS: plan.filters,
        FOCUS: plan.focus,
        CITED: cited(state),
        "resultados": found.iter().filter_map(FoundItem::stored).collect::<Vec<_>>(),
        "sources_used": found.iter().filter_map(|found| found.item.tesis()).map(|tesis| tesis.id_tesis).collect::<Vec<_>>(),
        "reused_sources": plan.intent == Intent::Reuse,
        "discussed_tesis_count": discussed.len(),
        "total_messages": plan.messages + 2,
        "iterations": state.queries.len(),
        "exit_reason": if is_off_topic { OFF_TOPIC } else { state.exit_reason.as_str() },
        "llm_reasoning": state.reasoning.join("; "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graph_is_complete() {
        assert!(tesis_graph().mermaid().contains("search --> judge"));
    }
}
