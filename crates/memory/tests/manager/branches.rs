//! Importing conversations with branches. The current branch becomes a thread, each other branch becomes a fork, and existing
//! messages never move.

use std::collections::BTreeMap;

use proptest::prelude::*;
use threadkeep_context::{ContextPolicy, RecallFrom, RecallPolicy};
use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedNode, ImportedThread, ImportedTree};
use threadkeep_core::{
    Content, Map, Message, MessageQuery, OpenThread, Role, Scope, Thread, ThreadKey, ThreadOrder, ThreadQuery,
    Timestamp, Value,
};
use threadkeep_memory::{Draft, ImportOptions, ImportReport, Memory, RecallOptions, SearchOptions, SearchResults};

use super::probe::{Outcome, Probe};
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

const KEY: &str = "import:test:talk";

/// A conversation in the source of an import.
#[derive(Clone, Debug, Default)]
struct Conversation {
    /// The parent of each message. Message 3 has the name `m3` and the text `word3`.
    parents: Vec<Option<usize>>,
    current: Option<usize>,
    updated_at: i64,
}

impl Conversation {
    fn new(parents: &[Option<usize>], current: usize) -> Self {
        Self { parents: parents.to_vec(), current: Some(current), updated_at: 0 }
    }

    fn extended(&self, more: &[Option<usize>], current: usize) -> Self {
        let parents = self.parents.iter().chain(more).copied().collect();
        Self { parents, current: Some(current), updated_at: self.updated_at + 1 }
    }

    fn item(&self) -> ImportItem {
        let node = |(index, parent): (usize, &Option<usize>)| ImportedNode { parent: *parent, message: message(index) };
        ImportItem::Tree(Box::new(ImportedTree {
            thread: thread(),
            nodes: self.parents.iter().enumerate().map(node).collect(),
            current: self.current,
            updated_at: Some(Timestamp::from_millis(self.updated_at).unwrap()),
        }))
    }

    fn path(&self, node: usize) -> Vec<String> {
        let mut path: Vec<_> =
            std::iter::successors(Some(node), |node| self.parents[*node]).map(message_name).collect();
        path.reverse();
        path
    }

    fn leaves(&self) -> Vec<usize> {
        (0..self.parents.len()).filter(|node| !self.parents.contains(&Some(*node))).collect()
    }

    /// The last message of the branch that the source displays.
    fn displayed_leaf(&self) -> Option<usize> {
        let mut leaf = self.current?;
        while let Some(last) = self.parents.iter().rposition(|parent| *parent == Some(leaf)) {
            leaf = last;
        }
        Some(leaf)
    }
}

fn message_name(index: usize) -> String {
    format!("m{index}")
}

fn thread() -> ImportedThread {
    ImportedThread {
        id: None,
        key: Some(ThreadKey::new(KEY).unwrap()),
        title: Some("Talk".to_owned()),
        metadata: Map::from_iter([("topic".to_owned(), "words".into())]),
        state: Map::new(),
        created_at: None,
        expires_at: None,
    }
}

fn message(index: usize) -> ImportedMessage {
    ImportedMessage {
        id: None,
        external_id: Some(message_name(index)),
        created_at: None,
        content: Content::text(Role::User, format!("word{index}")),
    }
}

/// The items that earlier versions imported for a branch with these messages.
fn linear_items(nodes: &[usize]) -> Vec<ImportItem> {
    let messages = nodes.iter().map(|node| ImportItem::Message(Box::new(message(*node))));
    std::iter::once(ImportItem::Thread(Box::new(thread()))).chain(messages).collect()
}

async fn import(memory: &Memory, items: impl IntoIterator<Item = ImportItem>) -> ImportReport {
    memory.import(&ana(), items, ImportOptions::default(), |_| {}).await.unwrap()
}

async fn import_conversation(memory: &Memory, conversation: &Conversation) -> ImportReport {
    let report = import(memory, [conversation.item()]).await;
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    report
}

async fn threads(memory: &Memory, scope: &Scope) -> Vec<Thread> {
    memory.list_threads(scope, &ThreadQuery::new(ThreadOrder::Created, 1_000)).await.unwrap().threads
}

async fn messages(memory: &Memory, thread: &Thread) -> Vec<Message> {
    memory.messages(&ana(), thread.id, &MessageQuery::following(0, 1_000)).await.unwrap().messages
}

/// The names of a thread's messages; `local` for messages that were not imported.
async fn transcript(memory: &Memory, thread: &Thread) -> Vec<String> {
    let messages = messages(memory, thread).await;
    messages.into_iter().map(|message| message.external_id.unwrap_or_else(|| "local".to_owned())).collect()
}

/// The names of each thread's messages, by the name of the last message.
async fn transcripts(memory: &Memory) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for thread in threads(memory, &ana()).await {
        let transcript = transcript(memory, &thread).await;
        let last = transcript.last().cloned().unwrap_or_default();
        assert!(all.insert(last, transcript).is_none(), "two threads contain the same branch");
    }
    all
}

/// A field of a thread's branch metadata.
fn branch_metadata<'a>(thread: &'a Thread, name: &str) -> Option<&'a Value> {
    thread.metadata.get("branch")?.get(name)
}

fn is_current(thread: &Thread) -> bool {
    branch_metadata(thread, "current") == Some(&Value::Bool(true))
}

async fn search(memory: &Memory, scope: &Scope, word: &str) -> SearchResults {
    memory.search(scope, word, &SearchOptions::default()).await.unwrap()
}

/// Messages 0 and 1, followed by a branch with message 2 and a branch with messages 3 and 4.
fn forked_conversation(current: usize) -> Conversation {
    Conversation::new(&[None, Some(0), Some(1), Some(1), Some(3)], current)
}

fn message_names(nodes: &[usize]) -> Vec<String> {
    nodes.iter().copied().map(message_name).collect()
}

#[tokio::test(start_paused = true)]
async fn the_current_branch_becomes_the_main_thread_and_others_become_forks() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let report = import_conversation(memory, &forked_conversation(4)).await;
        assert_eq!((report.threads_created, report.forks_created, report.messages_added), (2, 1, 5));
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        assert_eq!(transcript(memory, &main).await, message_names(&[0, 1, 3, 4]));
        assert_eq!(
            (main.title.as_deref(), &main.metadata["topic"], is_current(&main)),
            (Some("Talk"), &"words".into(), true)
        );
        let all = threads(memory, &ana()).await;
        let fork = all.iter().find(|thread| thread.id != main.id).unwrap();
        assert_eq!(transcript(memory, fork).await, message_names(&[0, 1, 2]));
        let from = serde_json::json!({ "thread": main.id, "seq": 2 });
        assert_eq!((branch_metadata(fork, "forked_from"), is_current(fork)), (Some(&from), false));
        assert_eq!(branch_metadata(fork, "conversation"), Some(&KEY.into()));
        assert_eq!(fork.title.as_deref(), Some("Talk"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn switching_branches_changes_only_the_metadata() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        import_conversation(memory, &forked_conversation(4)).await;
        let before = transcripts(memory).await;
        let switched = forked_conversation(4).extended(&[], 2);
        let report = import_conversation(memory, &switched).await;
        assert_eq!((report.threads_created, report.threads_found, report.forks_found), (0, 2, 1));
        assert_eq!((report.messages_added, report.messages_already_there), (0, 5));
        assert_eq!(transcripts(memory).await, before);
        let current: Vec<_> = threads(memory, &ana()).await.into_iter().filter(is_current).collect();
        assert_eq!(current.len(), 1);
        assert_eq!(transcript(memory, &current[0]).await, message_names(&[0, 1, 2]));
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        assert_eq!(branch_metadata(&main, "current_thread"), Some(&current[0].id.to_string().into()));
        // Importing an older export or the same one again changes nothing.
        let before = threads(memory, &ana()).await;
        for conversation in [&forked_conversation(4), &switched] {
            import_conversation(memory, conversation).await;
            assert_eq!(threads(memory, &ana()).await, before);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn new_messages_are_added_to_the_thread_of_their_branch() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        import_conversation(memory, &forked_conversation(4)).await;
        let extended = forked_conversation(4).extended(&[Some(2), Some(4), Some(4), None], 5);
        let report = import_conversation(memory, &extended).await;
        assert_eq!((report.forks_created, report.messages_added, report.messages_already_there), (2, 4, 5));
        let expected: BTreeMap<_, _> =
            extended.leaves().into_iter().map(|leaf| (message_name(leaf), extended.path(leaf))).collect();
        assert_eq!(transcripts(memory).await, expected);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn imports_of_earlier_versions_are_not_duplicated() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        import(memory, linear_items(&[0, 1, 2])).await;
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        let before = messages(memory, &main).await;
        let report = import_conversation(memory, &Conversation::new(&[None, Some(0), Some(1)], 2)).await;
        assert_eq!((report.threads_found, report.messages_added, report.messages_already_there), (1, 0, 3));
        assert_eq!(threads(memory, &ana()).await, std::slice::from_ref(&main));
        import_conversation(memory, &forked_conversation(4)).await;
        assert_eq!(messages(memory, &main).await, before);
        let expected = [("m2".to_owned(), message_names(&[0, 1, 2])), ("m4".to_owned(), message_names(&[0, 1, 3, 4]))];
        assert_eq!(transcripts(memory).await, BTreeMap::from(expected));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn threads_mixed_by_earlier_versions_remain_and_branches_are_added() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        import(memory, linear_items(&[0, 1, 3, 4, 2])).await;
        for _ in 0..2 {
            import_conversation(memory, &forked_conversation(2)).await;
            let all = threads(memory, &ana()).await;
            let mut transcripts = Vec::new();
            for thread in &all {
                transcripts.push(transcript(memory, thread).await);
            }
            transcripts.sort();
            assert_eq!(
                transcripts,
                [message_names(&[0, 1, 2]), message_names(&[0, 1, 3, 4]), message_names(&[0, 1, 3, 4, 2])]
            );
            let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
            assert_eq!(branch_metadata(&main, "mixed"), Some(&true.into()));
            assert_eq!(all.iter().filter(|thread| is_current(thread)).count(), 1);
            assert_eq!(search(memory, &ana(), "word1").await.hits.len(), 1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_continued_locally_is_not_mixed_with_later_imports() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let conversation = Conversation::new(&[None, Some(0)], 1);
        import_conversation(memory, &conversation).await;
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        memory.append(&ana(), main.id, Draft::user("appended here")).await.unwrap();
        for _ in 0..2 {
            import_conversation(memory, &conversation.extended(&[Some(1), Some(2)], 3)).await;
            let expected = [
                ("m3".to_owned(), message_names(&[0, 1, 2, 3])),
                ("local".to_owned(), vec!["m0".into(), "m1".into(), "local".into()]),
            ];
            assert_eq!(transcripts(memory).await, BTreeMap::from(expected));
        }
        // An older export with fewer messages adds nothing.
        import_conversation(memory, &conversation).await;
        assert_eq!(threads(memory, &ana()).await.len(), 2);
        // A branch that starts in the fork becomes another fork.
        for _ in 0..2 {
            import_conversation(memory, &conversation.extended(&[Some(1), Some(2), Some(2)], 3)).await;
            assert_eq!(transcripts(memory).await["m4"], message_names(&[0, 1, 2, 4]));
            assert_eq!(threads(memory, &ana()).await.len(), 3);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_erased_message_is_not_restored_in_forks() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let conversation = Conversation::new(&[None, Some(0), Some(1)], 2);
        import_conversation(memory, &conversation).await;
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        // The first message is shared with later forks; the last one becomes a sibling of a new branch.
        let stored = messages(memory, &main).await;
        let erased = [stored[0].id, stored[2].id];
        memory.erase_messages(&ana(), main.id, &erased).await.unwrap();
        for _ in 0..2 {
            import_conversation(memory, &conversation.extended(&[Some(1), Some(2), Some(3)], 5)).await;
            for word in ["word0", "word2"] {
                // The search corrects the word to one that is stored.
                let hits = search(memory, &ana(), word).await.hits;
                assert!(hits.iter().all(|hit| hit.message.plain_text() != word), "{hits:?}");
            }
            let expected = [("m4".to_owned(), message_names(&[1, 4])), ("m5".to_owned(), message_names(&[1, 3, 5]))];
            assert_eq!(transcripts(memory).await, BTreeMap::from(expected));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn local_edits_are_copied_to_later_forks() {
    let env = TestEnv::plain();
    let memory = &env.memory;
    import_conversation(memory, &Conversation::new(&[None, Some(0), Some(1)], 2)).await;
    let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
    let first = messages(memory, &main).await[0].id;
    let corrected = Content::text(Role::User, "corrected");
    memory.replace_message(&ana(), main.id, first, corrected, None).await.unwrap();
    import_conversation(memory, &forked_conversation(4)).await;
    for thread in threads(memory, &ana()).await {
        assert_eq!(messages(memory, &thread).await[0].plain_text(), "corrected");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_shared_by_forks_is_found_and_recalled_once() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let mut parents = vec![None, Some(0), Some(1)];
        parents.extend([Some(2); 30]);
        import_conversation(memory, &Conversation::new(&parents, 5)).await;
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        for scope in [ana(), acme()] {
            let found = search(memory, &scope, "word1").await;
            assert_eq!(found.hits.iter().map(|hit| (hit.thread, hit.message.seq)).collect::<Vec<_>>(), [(main.id, 2)]);
            let recalled = memory.recall(&scope, "word1 word7", &RecallOptions::default()).await.unwrap();
            let mut ids: Vec<_> = recalled.messages.iter().map(|found| found.message.id).collect();
            let count = ids.len();
            ids.sort();
            ids.dedup();
            assert!(count >= 4 && ids.len() == count, "{count}, {}", ids.len());
        }
        // Searching only a fork finds the copy in the fork.
        for thread in threads(memory, &ana()).await {
            let options = SearchOptions { thread: Some(thread.id), ..SearchOptions::default() };
            let found = memory.search(&ana(), "word1", &options).await.unwrap();
            assert_eq!(found.hits.iter().map(|hit| hit.thread).collect::<Vec<_>>(), [thread.id]);
        }
        // The conversation of another user is separate.
        memory.import(&ben(), [forked_conversation(4).item()], ImportOptions::default(), |_| {}).await.unwrap();
        assert_eq!(search(memory, &acme(), "word1").await.hits.len(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn copies_in_forks_do_not_displace_other_hits() {
    let env = TestEnv::plain();
    let memory = &env.memory;
    let other = env.open_thread().await;
    memory.append(&ana(), other, Draft::user("lighthouse in another thread")).await.unwrap();
    let ImportItem::Tree(mut tree) = Conversation::new(&[vec![None], vec![Some(0); 90]].concat(), 1).item() else {
        panic!()
    };
    for index in 0..5 {
        tree.nodes.insert(index, ImportedNode { parent: index.checked_sub(1), message: message(1_000 + index) });
        tree.nodes[index].message.content = Content::text(Role::User, format!("lighthouse {index}"));
    }
    for node in &mut tree.nodes[5..] {
        node.parent = Some(node.parent.map_or(4, |parent| parent + 5));
    }
    tree.current = Some(6);
    import(memory, [ImportItem::Tree(tree)]).await;
    let found = search(memory, &ana(), "lighthouse").await;
    assert_eq!(found.hits.len(), 6);
    assert!(found.hits.iter().any(|hit| hit.thread == other));
}

#[tokio::test(start_paused = true)]
async fn the_context_of_a_fork_includes_each_message_once() {
    let env = TestEnv::plain();
    let memory = &env.memory;
    import_conversation(memory, &forked_conversation(4)).await;
    let recall = RecallPolicy { from: RecallFrom::User, messages: 5, ..RecallPolicy::default() };
    let policy = ContextPolicy { recall, ..ContextPolicy::window(3) };
    for thread in threads(memory, &ana()).await.iter().filter(|thread| branch_metadata(thread, "forked_from").is_some())
    {
        let assembled = memory.context(&ana(), thread.id, Some("word0 word1 word2 word4"), &policy).await.unwrap();
        let context = serde_json::to_string(&assembled.context.messages).unwrap();
        // Each word is in its message and in the question.
        for word in ["word0", "word1", "word2", "word4"] {
            assert_eq!(context.matches(word).count(), 2, "{word} in {context}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_import_is_completed_by_the_next() {
    // 700 messages precede the branches, so copying them takes two commits.
    let mut parents: Vec<Option<usize>> = (0..700).map(|node: usize| node.checked_sub(1)).collect();
    parents.extend([Some(699), Some(699)]);
    let conversation = Conversation::new(&parents, 701);
    for completed_calls in 0..5 {
        let (probe, env) = Probe::new_env();
        let memory = &env.memory;
        probe.script(vec![Outcome::Success; completed_calls]);
        probe.script([Outcome::DiskFull]);
        let interrupted = memory.import(&ana(), [conversation.item()], ImportOptions::default(), |_| {}).await;
        assert!(interrupted.is_err(), "interrupted after {completed_calls} calls");
        import_conversation(memory, &conversation).await;
        let all = threads(memory, &ana()).await;
        assert_eq!(all.len(), 2);
        for (thread, leaf) in all.iter().zip([701, 700]) {
            assert_eq!(
                transcript(memory, thread).await,
                conversation.path(leaf),
                "interrupted after {completed_calls} calls"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn branches_beyond_the_limit_are_reported() {
    let env = TestEnv::plain();
    let memory = &env.memory;
    let with_branches = |count: usize| Conversation::new(&[vec![None], vec![Some(0); count]].concat(), count);
    for _ in 0..2 {
        let report = import(memory, [with_branches(103).item()]).await;
        let named: Vec<_> = report.problems.iter().filter_map(|problem| problem.name.clone()).collect();
        assert_eq!(named, ["m100", "m101", "m102"]);
        assert_eq!(threads(memory, &ana()).await.len(), 100);
        assert_eq!(search(memory, &ana(), "word103").await.hits.len(), 1, "the current branch is always imported");
    }
    let env = TestEnv::plain();
    let report = import(&env.memory, [with_branches(1_001).item()]).await;
    assert_eq!((report.problems.len(), report.threads_created, report.messages_added), (1, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_fork_survives_the_deletion_of_its_parent_thread() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        import_conversation(memory, &forked_conversation(4)).await;
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        memory.delete_thread(&ana(), main.id).await.unwrap();
        let report = import_conversation(memory, &forked_conversation(2)).await;
        assert_eq!((report.threads_erased, report.threads_created), (1, 0));
        let options = ImportOptions { includes_erased: true, ..ImportOptions::default() };
        for _ in 0..2 {
            memory.import(&ana(), [forked_conversation(2).item()], options, |_| {}).await.unwrap();
            let expected =
                [("m2".to_owned(), message_names(&[0, 1, 2])), ("m4".to_owned(), message_names(&[0, 1, 3, 4]))];
            assert_eq!(transcripts(memory).await, BTreeMap::from(expected));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_imports_do_not_mix_branches() {
    on_all_stores(async |env: TestEnv| {
        let conversations = [forked_conversation(4), forked_conversation(4).extended(&[Some(2), Some(4)], 5)];
        let imports = conversations.clone().map(|conversation| {
            let memory = env.memory.clone();
            tokio::spawn(async move { import(&memory, [conversation.item()]).await })
        });
        for imported in imports {
            assert!(imported.await.unwrap().problems.is_empty());
        }
        import_conversation(&env.memory, &conversations[1]).await;
        let expected: BTreeMap<_, _> = conversations[1]
            .leaves()
            .into_iter()
            .map(|leaf| (message_name(leaf), conversations[1].path(leaf)))
            .collect();
        assert_eq!(transcripts(&env.memory).await, expected);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_users_thread_with_the_same_key_is_ignored() {
    let env = TestEnv::plain();
    let memory = &env.memory;
    let open =
        OpenThread { key: Some(ThreadKey::new(KEY).unwrap()), ..OpenThread::new(&ben(), memory.generate_thread_id()) };
    memory.open_thread(&ben(), open).await.unwrap();
    import_conversation(memory, &forked_conversation(4)).await;
    assert_eq!(threads(memory, &ana()).await.len(), 2);
    assert_eq!(threads(memory, &ben()).await.len(), 1);
}

/// A step in the history of a conversation and its exports.
#[derive(Clone, Debug)]
enum Step {
    /// Adds a reply to a message, or a new root.
    Reply(Option<prop::sample::Index>),
    /// Exports the conversation with this current message, and imports it.
    Import(Option<prop::sample::Index>),
    /// Imports an earlier export again.
    ImportAgain(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<prop::sample::Index>();
    let step = prop_oneof![
        6 => proptest::option::weighted(0.95, index.clone()).prop_map(Step::Reply),
        2 => proptest::option::weighted(0.9, index.clone()).prop_map(Step::Import),
        1 => index.prop_map(Step::ImportAgain),
    ];
    proptest::collection::vec(step, 1..40)
}

/// Compares the threads with the imported conversation and with their transcripts `before`. Returns the transcripts by thread id.
async fn check_threads(
    memory: &Memory,
    conversation: &Conversation,
    before: &BTreeMap<String, Vec<String>>,
) -> BTreeMap<String, Vec<String>> {
    let (mut by_id, mut found) = (BTreeMap::new(), Vec::new());
    for thread in threads(memory, &ana()).await {
        let transcript = transcript(memory, &thread).await;
        if is_current(&thread) {
            assert_eq!(transcript.last(), conversation.displayed_leaf().map(message_name).as_ref());
        }
        found.push(transcript.clone());
        by_id.insert(thread.id.to_string(), transcript);
    }
    let mut expected: Vec<_> = conversation.leaves().into_iter().map(|leaf| conversation.path(leaf)).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "the threads differ from the branches");
    for (thread, transcript) in before {
        assert!(by_id[thread].starts_with(transcript), "existing messages were moved");
    }
    let current_threads = threads(memory, &ana()).await.into_iter().filter(is_current).count();
    assert_eq!(current_threads, usize::from(conversation.leaves().len() > 1));
    for word in 0..conversation.parents.len() {
        assert_eq!(search(memory, &ana(), &format!("word{word}")).await.hits.len(), 1, "word{word}");
    }
    by_id
}

async fn run_steps(steps: Vec<Step>) {
    let env = TestEnv::plain();
    let memory = &env.memory;
    let (mut conversation, mut exports) = (Conversation::default(), Vec::<Conversation>::new());
    let mut transcripts = BTreeMap::new();
    for step in steps {
        match step {
            Step::Reply(after) => {
                let after = after.filter(|_| !conversation.parents.is_empty());
                conversation.parents.push(after.map(|after| after.index(conversation.parents.len())));
            }
            Step::Import(current) if !conversation.parents.is_empty() => {
                conversation.updated_at += 1;
                // Without a current message, the source displays the path from the first message along the last child of each.
                conversation.current = Some(current.map_or(0, |current| current.index(conversation.parents.len())));
                let (added, known) = {
                    let report = import_conversation(memory, &conversation).await;
                    (report.messages_added, report.messages_already_there)
                };
                assert_eq!(added + known, conversation.parents.len() as u64);
                transcripts = check_threads(memory, &conversation, &transcripts).await;
                exports.push(conversation.clone());
                let before = threads(memory, &ana()).await;
                assert_eq!(import_conversation(memory, &conversation).await.messages_added, 0);
                assert_eq!(threads(memory, &ana()).await, before, "importing again changed the threads");
            }
            Step::ImportAgain(index) if !exports.is_empty() => {
                let before = threads(memory, &ana()).await;
                let report = import_conversation(memory, index.get(&exports)).await;
                assert_eq!((report.threads_created, report.messages_added), (0, 0));
                assert_eq!(threads(memory, &ana()).await, before, "importing an older export changed the threads");
            }
            Step::Import(_) | Step::ImportAgain(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn threads_match_branches_after_any_steps(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run_steps(steps));
    }
}
