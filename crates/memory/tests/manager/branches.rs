//! Conversations with branches: one thread, a fork for each other branch, and nothing that moves.

use std::collections::BTreeMap;

use proptest::prelude::*;
use threadkeep_context::{ContextPolicy, RecallFrom, RecallPolicy};
use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedNode, ImportedThread, ImportedTree};
use threadkeep_core::{
    Content, Map, Message, MessageQuery, OpenThread, Role, Scope, Thread, ThreadKey, ThreadOrder, ThreadQuery,
    Timestamp, Value,
};
use threadkeep_memory::{Draft, ImportOptions, ImportReport, Memory, RecallOptions, SearchOptions, SearchResults};

use super::probe::{Fate, Probe};
use super::world::{World, acme, ana, ben, everywhere};

const KEY: &str = "import:test:talk";

/// A conversation as its source has it.
#[derive(Clone, Debug, Default)]
struct Talk {
    /// What each message follows; it is called `m` and its place, and says `word` and its place.
    parents: Vec<Option<usize>>,
    current: Option<usize>,
    updated_at: i64,
}

impl Talk {
    fn of(parents: &[Option<usize>], current: usize) -> Self {
        Self { parents: parents.to_vec(), current: Some(current), updated_at: 0 }
    }

    fn then(&self, more: &[Option<usize>], current: usize) -> Self {
        let parents = self.parents.iter().chain(more).copied().collect();
        Self { parents, current: Some(current), updated_at: self.updated_at + 1 }
    }

    fn item(&self) -> ImportItem {
        let node = |(place, parent): (usize, &Option<usize>)| ImportedNode { parent: *parent, message: message(place) };
        ImportItem::Tree(Box::new(ImportedTree {
            thread: thread(),
            nodes: self.parents.iter().enumerate().map(node).collect(),
            current: self.current,
            updated_at: Some(Timestamp::from_millis(self.updated_at).unwrap()),
        }))
    }

    fn path(&self, node: usize) -> Vec<String> {
        let mut path: Vec<_> = std::iter::successors(Some(node), |node| self.parents[*node]).map(name).collect();
        path.reverse();
        path
    }

    fn leaves(&self) -> Vec<usize> {
        (0..self.parents.len()).filter(|node| !self.parents.contains(&Some(*node))).collect()
    }

    /// The last message of the branch that is shown.
    fn shown(&self) -> Option<usize> {
        let mut shown = self.current?;
        while let Some(last) = self.parents.iter().rposition(|parent| *parent == Some(shown)) {
            shown = last;
        }
        Some(shown)
    }
}

fn name(place: usize) -> String {
    format!("m{place}")
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

fn message(place: usize) -> ImportedMessage {
    ImportedMessage {
        id: None,
        external_id: Some(name(place)),
        created_at: None,
        content: Content::text(Role::User, format!("word{place}")),
    }
}

/// What an earlier version made of a branch.
fn linear(nodes: &[usize]) -> Vec<ImportItem> {
    let messages = nodes.iter().map(|node| ImportItem::Message(Box::new(message(*node))));
    std::iter::once(ImportItem::Thread(Box::new(thread()))).chain(messages).collect()
}

async fn import(memory: &Memory, items: impl IntoIterator<Item = ImportItem>) -> ImportReport {
    memory.import(&ana(), items, ImportOptions::default(), |_| {}).await.unwrap()
}

async fn import_talk(memory: &Memory, talk: &Talk) -> ImportReport {
    let report = import(memory, [talk.item()]).await;
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    report
}

async fn threads(memory: &Memory, scope: &Scope) -> Vec<Thread> {
    memory.list_threads(scope, &ThreadQuery::new(ThreadOrder::Created, 1_000)).await.unwrap().threads
}

async fn messages(memory: &Memory, thread: &Thread) -> Vec<Message> {
    memory.messages(&ana(), thread.id, &MessageQuery::following(0, 1_000)).await.unwrap().messages
}

async fn transcript(memory: &Memory, thread: &Thread) -> Vec<String> {
    let messages = messages(memory, thread).await;
    messages.into_iter().map(|message| message.external_id.unwrap_or_else(|| "own".to_owned())).collect()
}

/// Each thread's messages, by their last one.
async fn transcripts(memory: &Memory) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for thread in threads(memory, &ana()).await {
        let transcript = transcript(memory, &thread).await;
        let last = transcript.last().cloned().unwrap_or_default();
        assert!(all.insert(last, transcript).is_none(), "two threads are one branch");
    }
    all
}

fn mark<'a>(thread: &'a Thread, name: &str) -> Option<&'a Value> {
    thread.metadata.get("branch")?.get(name)
}

fn is_current(thread: &Thread) -> bool {
    mark(thread, "current") == Some(&Value::Bool(true))
}

async fn search(memory: &Memory, scope: &Scope, word: &str) -> SearchResults {
    memory.search(scope, word, &SearchOptions::default()).await.unwrap()
}

/// 0 and 1, then 2, or 3 and 4.
fn forked(current: usize) -> Talk {
    Talk::of(&[None, Some(0), Some(1), Some(1), Some(3)], current)
}

fn words(nodes: &[usize]) -> Vec<String> {
    nodes.iter().copied().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn the_current_branch_is_the_thread_and_each_other_one_a_fork_at_its_point() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let report = import_talk(memory, &forked(4)).await;
        assert_eq!((report.threads_created, report.forks_created, report.messages_added), (2, 1, 5));
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        assert_eq!(transcript(memory, &main).await, words(&[0, 1, 3, 4]));
        assert_eq!(
            (main.title.as_deref(), &main.metadata["topic"], is_current(&main)),
            (Some("Talk"), &"words".into(), true)
        );
        let all = threads(memory, &ana()).await;
        let fork = all.iter().find(|thread| thread.id != main.id).unwrap();
        assert_eq!(transcript(memory, fork).await, words(&[0, 1, 2]));
        let from = serde_json::json!({ "thread": main.id, "seq": 2 });
        assert_eq!((mark(fork, "forked_from"), is_current(fork)), (Some(&from), false));
        assert_eq!(mark(fork, "conversation"), Some(&KEY.into()));
        assert_eq!(fork.title.as_deref(), Some("Talk"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn switching_moves_nothing_but_the_mark() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        import_talk(memory, &forked(4)).await;
        let before = transcripts(memory).await;
        let switched = forked(4).then(&[], 2);
        let report = import_talk(memory, &switched).await;
        assert_eq!((report.threads_created, report.threads_found, report.forks_found), (0, 2, 1));
        assert_eq!((report.messages_added, report.messages_already_there), (0, 5));
        assert_eq!(transcripts(memory).await, before);
        let current: Vec<_> = threads(memory, &ana()).await.into_iter().filter(is_current).collect();
        assert_eq!(current.len(), 1);
        assert_eq!(transcript(memory, &current[0]).await, words(&[0, 1, 2]));
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        assert_eq!(mark(&main, "current_thread"), Some(&current[0].id.to_string().into()));
        // An older export does not move it back, and the same one again changes nothing.
        let before = threads(memory, &ana()).await;
        for talk in [&forked(4), &switched] {
            import_talk(memory, talk).await;
            assert_eq!(threads(memory, &ana()).await, before);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_branch_grows_in_its_own_thread() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        import_talk(memory, &forked(4)).await;
        let grown = forked(4).then(&[Some(2), Some(4), Some(4), None], 5);
        let report = import_talk(memory, &grown).await;
        assert_eq!((report.forks_created, report.messages_added, report.messages_already_there), (2, 4, 5));
        let expected: BTreeMap<_, _> = grown.leaves().into_iter().map(|leaf| (name(leaf), grown.path(leaf))).collect();
        assert_eq!(transcripts(memory).await, expected);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_version_imported_is_not_doubled() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        import(memory, linear(&[0, 1, 2])).await;
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        let before = messages(memory, &main).await;
        let report = import_talk(memory, &Talk::of(&[None, Some(0), Some(1)], 2)).await;
        assert_eq!((report.threads_found, report.messages_added, report.messages_already_there), (1, 0, 3));
        assert_eq!(threads(memory, &ana()).await, std::slice::from_ref(&main));
        import_talk(memory, &forked(4)).await;
        assert_eq!(messages(memory, &main).await, before);
        let expected = [("m2".to_owned(), words(&[0, 1, 2])), ("m4".to_owned(), words(&[0, 1, 3, 4]))];
        assert_eq!(transcripts(memory).await, BTreeMap::from(expected));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_an_earlier_version_mixed_stays_and_its_branches_become_readable() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        import(memory, linear(&[0, 1, 3, 4, 2])).await;
        for _ in 0..2 {
            import_talk(memory, &forked(2)).await;
            let all = threads(memory, &ana()).await;
            let mut seen = Vec::new();
            for thread in &all {
                seen.push(transcript(memory, thread).await);
            }
            seen.sort();
            assert_eq!(seen, [words(&[0, 1, 2]), words(&[0, 1, 3, 4]), words(&[0, 1, 3, 4, 2])]);
            let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
            assert_eq!(mark(&main, "mixed"), Some(&true.into()));
            assert_eq!(all.iter().filter(|thread| is_current(thread)).count(), 1);
            assert_eq!(search(memory, &ana(), "word1").await.hits.len(), 1);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_goes_on_here_is_not_mixed_with_what_comes_later() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let talk = Talk::of(&[None, Some(0)], 1);
        import_talk(memory, &talk).await;
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        memory.append(&ana(), main.id, Draft::user("said here")).await.unwrap();
        for _ in 0..2 {
            import_talk(memory, &talk.then(&[Some(1), Some(2)], 3)).await;
            let expected = [
                ("m3".to_owned(), words(&[0, 1, 2, 3])),
                ("own".to_owned(), vec!["m0".into(), "m1".into(), "own".into()]),
            ];
            assert_eq!(transcripts(memory).await, BTreeMap::from(expected));
        }
        // An older export that has less, and ends where the thread does not, adds nothing.
        import_talk(memory, &talk).await;
        assert_eq!(threads(memory, &ana()).await.len(), 2);
        // The branch that goes on in the fork branches again.
        for _ in 0..2 {
            import_talk(memory, &talk.then(&[Some(1), Some(2), Some(2)], 3)).await;
            assert_eq!(transcripts(memory).await["m4"], words(&[0, 1, 2, 4]));
            assert_eq!(threads(memory, &ana()).await.len(), 3);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_erased_message_comes_back_in_no_fork() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let talk = Talk::of(&[None, Some(0), Some(1)], 2);
        import_talk(memory, &talk).await;
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        // One that later forks would share, and the last, beside which a branch appears.
        let held = messages(memory, &main).await;
        let erased = [held[0].id, held[2].id];
        memory.erase_messages(&ana(), main.id, &erased).await.unwrap();
        for _ in 0..2 {
            import_talk(memory, &talk.then(&[Some(1), Some(2), Some(3)], 5)).await;
            for word in ["word0", "word2"] {
                assert_eq!(search(memory, &ana(), word).await.hits, []);
            }
            let expected = [("m4".to_owned(), words(&[1, 4])), ("m5".to_owned(), words(&[1, 3, 5]))];
            assert_eq!(transcripts(memory).await, BTreeMap::from(expected));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_correction_made_here_is_in_the_forks_that_come_later() {
    let world = World::plain();
    let memory = &world.memory;
    import_talk(memory, &Talk::of(&[None, Some(0), Some(1)], 2)).await;
    let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
    let first = messages(memory, &main).await[0].id;
    let corrected = Content::text(Role::User, "corrected");
    memory.replace_message(&ana(), main.id, first, corrected, None).await.unwrap();
    import_talk(memory, &forked(4)).await;
    for thread in threads(memory, &ana()).await {
        assert_eq!(messages(memory, &thread).await[0].plain_text(), "corrected");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_forks_share_is_found_and_recalled_once() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        let mut parents = vec![None, Some(0), Some(1)];
        parents.extend([Some(2); 30]);
        import_talk(memory, &Talk::of(&parents, 5)).await;
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        for scope in [ana(), acme()] {
            let found = search(memory, &scope, "word1").await;
            assert_eq!(found.hits.iter().map(|hit| (hit.thread, hit.message.seq)).collect::<Vec<_>>(), [(main.id, 2)]);
            let recalled = memory.recall(&scope, "word1 word7", &RecallOptions::default()).await.unwrap();
            let mut ids: Vec<_> = recalled.turns.iter().map(|turn| turn.message.id).collect();
            let count = ids.len();
            ids.sort();
            ids.dedup();
            assert!(count >= 4 && ids.len() == count, "{count}, {}", ids.len());
        }
        // In a fork it is found where it stands there.
        for thread in threads(memory, &ana()).await {
            let options = SearchOptions { thread: Some(thread.id), ..SearchOptions::default() };
            let found = memory.search(&ana(), "word1", &options).await.unwrap();
            assert_eq!(found.hits.iter().map(|hit| hit.thread).collect::<Vec<_>>(), [thread.id]);
        }
        // Another person's conversation is another one.
        memory.import(&ben(), [forked(4).item()], ImportOptions::default(), |_| {}).await.unwrap();
        assert_eq!(search(memory, &acme(), "word1").await.hits.len(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn copies_do_not_crowd_other_messages_out() {
    let world = World::plain();
    let memory = &world.memory;
    let other = world.thread().await;
    memory.append(&ana(), other, Draft::user("lighthouse, said elsewhere")).await.unwrap();
    let ImportItem::Tree(mut tree) = Talk::of(&[vec![None], vec![Some(0); 90]].concat(), 1).item() else { panic!() };
    for said in 0..5 {
        tree.nodes.insert(said, ImportedNode { parent: said.checked_sub(1), message: message(1_000 + said) });
        tree.nodes[said].message.content = Content::text(Role::User, format!("lighthouse {said}"));
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
async fn the_context_of_a_fork_is_its_whole_conversation_and_says_nothing_twice() {
    let world = World::plain();
    let memory = &world.memory;
    import_talk(memory, &forked(4)).await;
    let recall = RecallPolicy { from: RecallFrom::User, messages: 5, ..RecallPolicy::default() };
    let policy = ContextPolicy { recall, ..ContextPolicy::window(3) };
    for thread in threads(memory, &ana()).await.iter().filter(|thread| mark(thread, "forked_from").is_some()) {
        let assembled = memory.context(&ana(), thread.id, Some("word0 word1 word2 word4"), &policy).await.unwrap();
        let said = serde_json::to_string(&assembled.context.messages).unwrap();
        // Each is in the question as well.
        for word in ["word0", "word1", "word2", "word4"] {
            assert_eq!(said.matches(word).count(), 2, "{word} in {said}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_import_that_was_cut_anywhere_is_completed_by_the_next() {
    // 700 messages before the branches: copying them takes two commits.
    let mut parents: Vec<Option<usize>> = (0..700).map(|node: usize| node.checked_sub(1)).collect();
    parents.extend([Some(699), Some(699)]);
    let talk = Talk::of(&parents, 701);
    for cut in 0..5 {
        let (probe, world) = Probe::world();
        let memory = &world.memory;
        probe.will_end(vec![Fate::Done; cut]);
        probe.will_end([Fate::DiskFull]);
        let cut_off = memory.import(&ana(), [talk.item()], ImportOptions::default(), |_| {}).await;
        assert!(cut_off.is_err(), "cut {cut}");
        import_talk(memory, &talk).await;
        let all = threads(memory, &ana()).await;
        assert_eq!(all.len(), 2);
        for (thread, leaf) in all.iter().zip([701, 700]) {
            assert_eq!(transcript(memory, thread).await, talk.path(leaf), "cut {cut}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn branches_beyond_the_bounds_are_named() {
    let world = World::plain();
    let memory = &world.memory;
    let of = |branches: usize| Talk::of(&[vec![None], vec![Some(0); branches]].concat(), branches);
    for _ in 0..2 {
        let report = import(memory, [of(103).item()]).await;
        let named: Vec<_> = report.problems.iter().filter_map(|problem| problem.name.clone()).collect();
        assert_eq!(named, ["m100", "m101", "m102"]);
        assert_eq!(threads(memory, &ana()).await.len(), 100);
        assert_eq!(search(memory, &ana(), "word103").await.hits.len(), 1, "the current branch is never left out");
    }
    let world = World::plain();
    let report = import(&world.memory, [of(1_001).item()]).await;
    assert_eq!((report.problems.len(), report.threads_created, report.messages_added), (1, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_fork_whose_parent_thread_was_deleted_is_neither_doubled_nor_lost() {
    everywhere(async |world: World| {
        let memory = &world.memory;
        import_talk(memory, &forked(4)).await;
        let main = memory.find_thread_by_key(&ana(), KEY).await.unwrap().unwrap();
        memory.delete_thread(&ana(), main.id).await.unwrap();
        for _ in 0..2 {
            import_talk(memory, &forked(2)).await;
            let expected = [("m2".to_owned(), words(&[0, 1, 2])), ("m4".to_owned(), words(&[0, 1, 3, 4]))];
            assert_eq!(transcripts(memory).await, BTreeMap::from(expected));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_imports_of_two_states_at_once_mix_nothing() {
    everywhere(async |world: World| {
        let talks = [forked(4), forked(4).then(&[Some(2), Some(4)], 5)];
        let imports = talks.clone().map(|talk| {
            let memory = world.memory.clone();
            tokio::spawn(async move { import(&memory, [talk.item()]).await })
        });
        for imported in imports {
            assert!(imported.await.unwrap().problems.is_empty());
        }
        import_talk(&world.memory, &talks[1]).await;
        let expected: BTreeMap<_, _> =
            talks[1].leaves().into_iter().map(|leaf| (name(leaf), talks[1].path(leaf))).collect();
        assert_eq!(transcripts(&world.memory).await, expected);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_key_of_somebody_else_is_no_fork() {
    let world = World::plain();
    let memory = &world.memory;
    let open =
        OpenThread { key: Some(ThreadKey::new(KEY).unwrap()), ..OpenThread::new(&ben(), memory.mint_thread_id()) };
    memory.open_thread(&ben(), open).await.unwrap();
    import_talk(memory, &forked(4)).await;
    assert_eq!(threads(memory, &ana()).await.len(), 2);
    assert_eq!(threads(memory, &ben()).await.len(), 1);
}

/// What happens to a conversation between two exports.
#[derive(Clone, Debug)]
enum Step {
    /// Somebody answers a message, or begins anew.
    Say(Option<prop::sample::Index>),
    /// It is exported while this message is shown, and imported.
    Import(Option<prop::sample::Index>),
    /// An earlier export is imported again.
    ImportAgain(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = any::<prop::sample::Index>();
    let step = prop_oneof![
        6 => proptest::option::weighted(0.95, index.clone()).prop_map(Step::Say),
        2 => proptest::option::weighted(0.9, index.clone()).prop_map(Step::Import),
        1 => index.prop_map(Step::ImportAgain),
    ];
    proptest::collection::vec(step, 1..40)
}

/// Holds the threads against the conversation, after it was imported as it stands.
async fn check(memory: &Memory, talk: &Talk, before: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
    let (mut by_id, mut found) = (BTreeMap::new(), Vec::new());
    for thread in threads(memory, &ana()).await {
        let transcript = transcript(memory, &thread).await;
        if is_current(&thread) {
            assert_eq!(transcript.last(), talk.shown().map(name).as_ref());
        }
        found.push(transcript.clone());
        by_id.insert(thread.id.to_string(), transcript);
    }
    let mut expected: Vec<_> = talk.leaves().into_iter().map(|leaf| talk.path(leaf)).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "the threads are the branches");
    for (thread, transcript) in before {
        assert!(by_id[thread].starts_with(transcript), "what is there moves");
    }
    let marked = threads(memory, &ana()).await.into_iter().filter(is_current).count();
    assert_eq!(marked, usize::from(talk.leaves().len() > 1));
    for word in 0..talk.parents.len() {
        assert_eq!(search(memory, &ana(), &format!("word{word}")).await.hits.len(), 1, "word{word}");
    }
    by_id
}

async fn play(steps: Vec<Step>) {
    let world = World::plain();
    let memory = &world.memory;
    let (mut talk, mut exports) = (Talk::default(), Vec::<Talk>::new());
    let mut seen = BTreeMap::new();
    for step in steps {
        match step {
            Step::Say(after) => {
                let after = after.filter(|_| !talk.parents.is_empty());
                talk.parents.push(after.map(|after| after.index(talk.parents.len())));
            }
            Step::Import(current) if !talk.parents.is_empty() => {
                talk.updated_at += 1;
                // Without a word about it, the last children of the first message are shown.
                talk.current = Some(current.map_or(0, |current| current.index(talk.parents.len())));
                let (added, known) = {
                    let report = import_talk(memory, &talk).await;
                    (report.messages_added, report.messages_already_there)
                };
                assert_eq!(added + known, talk.parents.len() as u64);
                seen = check(memory, &talk, &seen).await;
                exports.push(talk.clone());
                let before = threads(memory, &ana()).await;
                assert_eq!(import_talk(memory, &talk).await.messages_added, 0);
                assert_eq!(threads(memory, &ana()).await, before, "importing again changes nothing");
            }
            Step::ImportAgain(which) if !exports.is_empty() => {
                let before = threads(memory, &ana()).await;
                let report = import_talk(memory, which.get(&exports)).await;
                assert_eq!((report.threads_created, report.messages_added), (0, 0));
                assert_eq!(threads(memory, &ana()).await, before, "an older export changes nothing");
            }
            Step::Import(_) | Step::ImportAgain(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn whatever_grows_and_switches_the_threads_are_the_branches(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(steps));
    }
}
