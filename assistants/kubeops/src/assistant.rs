//! The definition of the assistant.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use threadkeep::agent::{
    ApprovalPolicy, EarlierRequests, Failure, FnActivity, PrepareRequest, RetryPolicy, TurnPreparation, list_approvals,
    stop_waiting_turn,
};
use threadkeep::{Assistant, ChatModel, ContextPolicy, Definition, JsonText, Message, Rendering};

use crate::cluster::{Cluster, ObjectSummary};
use crate::config::Config;
use crate::conversation::Conversation;
use crate::graph::{CHECK, CONVERSATION, CheckedCall, conversation_value, kubeops_graph};
use crate::kinds::{UNUSUAL, USUAL};
use crate::offline::{OfflineOperator, fit_of_words, may_name_unusual_kind, spoken_of, taken_back, words_of};
use crate::tool::{Kubectl, tool_error};
use crate::{INSTRUCTIONS, MEMORY_PARAGRAPH};

/// The name of the assistant.
pub(crate) const NAME: &str = "kubeops";
/// Its purpose.
pub(crate) const ABOUT: &str = "Operates a Kubernetes cluster: reads freely, and changes nothing without an approval.";

/// The maximum length of a history message in the context, in characters.
const MESSAGE_CHARACTERS: usize = 500;

/// The assistant.
#[derive(Clone, Debug)]
pub struct Kubeops {
    definition: Definition,
    cluster: Arc<Cluster>,
    window: usize,
    /// Whether the offline model answers.
    is_offline: bool,
}

impl Kubeops {
    /// Creates the assistant. Without a model, the offline one understands commands and their follow-ups.
    #[must_use]
    pub fn new(cluster: Cluster, config: &Config, model: Option<Arc<dyn ChatModel>>) -> Self {
        let cluster = Arc::new(cluster);
        let is_offline = model.is_none();
        let model = model.unwrap_or_else(|| Arc::new(OfflineOperator));
        let mut definition = Definition::new(NAME, model)
            .with_graph(kubeops_graph())
            .with_tool(Kubectl::new(Arc::clone(&cluster)))
            .with_activity(check_activity(Arc::clone(&cluster)));
        definition.description = ABOUT.to_owned();
        definition.context = ContextPolicy {
            window: Some(config.memory.context_window),
            message_characters: Some(MESSAGE_CHARACTERS),
            summary: None,
            rendering: Rendering::Transcript,
            preferences: false,
            ..ContextPolicy::default()
        };
        definition.approvals = ApprovalPolicy {
            expires_after: Duration::from_secs(u64::from(config.approvals.expires_minutes) * 60),
            deciders: config.approvals.allowed_users.clone(),
            // The offline model says which requests a message replaces; with another model, a new request replaces all.
            earlier_requests: if is_offline { EarlierRequests::Keep } else { EarlierRequests::Replace },
        };
        let instructions = instructions(config.instructions.as_deref());
        Self {
            definition: definition.with_instructions(instructions),
            cluster,
            window: config.memory.context_window,
            is_offline,
        }
    }

    /// Finds the objects that a message may name. If the assistant had asked a question, the message before it counts, too.
    async fn find_mentioned(&self, message: &str, conversation: &Conversation) -> Option<Vec<ObjectSummary>> {
        let mut words = words_of(message);
        let asked: Vec<&str> =
            conversation.earlier.iter().rev().take_while(|last| last.asked).take(3).map(|last| &*last.said).collect();
        words.extend(asked.iter().flat_map(|said| words_of(said)));
        words.extend(spoken_of(conversation));
        let match_rank = |object: &ObjectSummary| {
            fit_of_words(&words, &object.name).or_else(|| has_image(&words, object).then_some(4))
        };
        let mut found = self.cluster.find_mentioned(&USUAL, &match_rank).await?;
        let is_known = |word: &str| {
            let names = found.iter().map(|object| &object.name).chain(&conversation.namespaces);
            let word = [word.to_owned()];
            names.into_iter().any(|name| fit_of_words(&word, name).is_some())
        };
        if std::iter::once(message).chain(asked).any(|text| may_name_unusual_kind(text, &is_known)) {
            found.extend(self.cluster.find_mentioned(&UNUSUAL, &match_rank).await.unwrap_or_default());
        }
        Some(found)
    }
}

/// Returns the instructions, which always contain the paragraph about the memory.
fn instructions(custom: Option<&str>) -> String {
    let text = custom.unwrap_or(INSTRUCTIONS).trim_end();
    if text.contains(MEMORY_PARAGRAPH) { text.to_owned() } else { format!("{text}\n\n{MEMORY_PARAGRAPH}") }
}

/// Whether one of the words names an object's image: "postgres".
fn has_image(words: &[String], object: &ObjectSummary) -> bool {
    let image = object.image.rsplit('/').next().and_then(|image| image.split(':').next()).unwrap_or_default();
    object.kind != "pods"
        && words.iter().any(|word| word.len() > 3 && (image == word || image.split('-').any(|part| part == word)))
}

/// Checks the commands of an answer before they are carried out: those that change the cluster, with a dry run.
fn check_activity(cluster: Arc<Cluster>) -> FnActivity {
    FnActivity::new(CHECK, RetryPolicy::Retryable, move |_, input: JsonText| {
        let cluster = Arc::clone(&cluster);
        async move {
            let failed = |error: threadkeep::StoreError| Failure::new("check_failed", error.to_string());
            let mut calls: Vec<CheckedCall> = input.read().map_err(failed)?;
            for call in &mut calls {
                check(&cluster, call).await;
            }
            JsonText::of(&calls).map_err(failed)
        }
    })
}

async fn check(cluster: &Cluster, call: &mut CheckedCall) {
    let Ok(command) = call.arguments.read::<crate::Command>() else {
        // The tool reports what is wrong with the arguments.
        return;
    };
    if command.verb.is_read() {
        return;
    }
    match cluster.prepare(&command).await {
        Ok(prepared) => match JsonText::of(&prepared) {
            Ok(arguments) => call.arguments = arguments,
            Err(error) => call.refusal = Some(error.to_string()),
        },
        Err(error) => call.refusal = Some(tool_error(error).to_string()),
    }
}

#[async_trait]
impl Assistant for Kubeops {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    async fn prepare(&self, request: &PrepareRequest<'_>) -> Result<TurnPreparation, Failure> {
        let failed = |error: threadkeep::MemoryError| Failure::new("history_failed", error.to_string());
        let newest = request.memory.newest(request.scope, request.thread, self.window * 2 + 2).await.map_err(failed)?;
        let earlier: Vec<Message> = newest.into_iter().filter(|message| message.seq < request.seq).collect();
        let is_offline = self.is_offline;
        let shown = &earlier[earlier.len().saturating_sub(self.window)..];
        let approvals = list_approvals(request.memory, request.scope, request.thread).await.map_err(failed)?;
        let mut conversation = Conversation::of(shown, &approvals, self.cluster.default_namespace());
        conversation.question = request.question.to_owned();
        conversation.namespaces = self.cluster.namespaces().await;
        if is_offline {
            conversation.mentioned = self.find_mentioned(request.question, &conversation).await;
        }
        let turns = taken_back(request.question, &conversation, is_offline);
        for turn in &turns {
            stop_waiting_turn(request.memory, request.scope, request.thread, turn).await.map_err(failed)?;
        }
        conversation.withdraw(&turns);
        let extra_input = [(CONVERSATION.to_owned(), conversation_value(&conversation))].into_iter().collect();
        Ok(TurnPreparation { extra_input, ..TurnPreparation::default() })
    }

    fn approval_reply(&self, previews: &[&str]) -> String {
        let requests = previews.iter().map(|preview| {
            let (line, effect) = preview.split_once('\n').unwrap_or((preview, ""));
            if effect.is_empty() { format!("`{line}`") } else { format!("`{line}`\n{effect}") }
        });
        let requests: Vec<String> = requests.collect();
        format!("⚠️ This action requires approval\n{}\nReact with ✅ to approve or ❌ to deny.", requests.join("\n"))
    }
}
