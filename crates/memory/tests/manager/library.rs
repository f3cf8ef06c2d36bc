use std::sync::Mutex;

use threadkeep_core::Scope;
use threadkeep_memory::{
    EmbedderOutcome, FoundPassages, LibraryUpload, Memory, NewLibraryDocument, Passage, PassageOptions, StoredUpload,
    UploadState,
};

use super::embedder::FakeEmbedder;
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

fn document(id: &str, texts: &[&str]) -> NewLibraryDocument {
    let passages = texts
        .iter()
        .enumerate()
        .map(|(index, text)| Passage { place: format!("paragraph {}", index + 1), text: (*text).to_owned() });
    NewLibraryDocument {
        id: id.to_owned(),
        title: format!("About {id}"),
        revision: "1".to_owned(),
        passages: passages.collect(),
    }
}

async fn find_passages(memory: &Memory, scope: &Scope, question: &str) -> FoundPassages {
    memory.find_passages(scope, "handbook", question, &PassageOptions::default()).await.unwrap()
}

async fn find_passage_ids(memory: &Memory, scope: &Scope, question: &str) -> Vec<String> {
    find_passages(memory, scope, question).await.passages.into_iter().map(|found| found.id).collect()
}

async fn put_document(memory: &Memory, scope: &Scope, document: NewLibraryDocument) {
    memory.put_library_document(scope, "handbook", document, None).await.unwrap();
}

// S1.35
#[tokio::test(start_paused = true)]
async fn passages_are_returned_with_their_location() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let texts =
            ["Parental leave lasts eighteen weeks.", "After five years it is twenty weeks.", "Lunch is at noon."];
        put_document(memory, &ana(), document("leave.md", &texts)).await;
        let found = find_passages(memory, &ana(), "How long is parental leave?").await;
        let best = &found.passages[0];
        assert_eq!(
            (best.title.as_str(), best.place.as_str(), best.text.as_str()),
            ("About leave.md", "paragraph 1", texts[0])
        );
        assert_eq!(found.embedder_outcome, EmbedderOutcome::NotRequested);
        let source = best.source();
        assert_eq!((source.kind.as_str(), source.id.as_str()), ("document", "leave.md#0"));
        assert_eq!(source.title.as_deref(), Some("About leave.md, paragraph 1"));
        assert_eq!(find_passage_ids(memory, &ana(), "What does a unicorn eat?").await, Vec::<String>::new());
        assert_eq!(find_passage_ids(memory, &ana(), "").await, Vec::<String>::new());
        let zero_limit = PassageOptions { limit: 0, ..PassageOptions::default() };
        assert!(memory.find_passages(&ana(), "handbook", "leave", &zero_limit).await.is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn adding_a_document_again_replaces_it() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let passages: Vec<String> = (0..150).map(|number| format!("A walrus, number {number}.")).collect();
        let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
        put_document(memory, &ana(), document("animals", &passages)).await;
        assert_eq!(find_passage_ids(memory, &ana(), "number 149").await[0], "animals#149");
        put_document(memory, &ana(), document("animals", &["A narwhal."])).await;
        put_document(memory, &ana(), document("other", &["A walrus at last."])).await;
        assert_eq!(find_passage_ids(memory, &ana(), "walrus").await, ["other#0"]);
        let listed = memory.list_library(&ana(), "handbook").await.unwrap();
        let listed: Vec<_> =
            listed.iter().map(|document| (document.id.as_str(), document.passages, document.is_complete)).collect();
        assert_eq!(listed, [("animals", 1, true), ("other", 1, true)]);
        assert!(memory.remove_library_document(&ana(), "handbook", "animals").await.unwrap());
        assert!(!memory.remove_library_document(&ana(), "handbook", "animals").await.unwrap());
        assert_eq!(find_passage_ids(memory, &ana(), "narwhal").await, Vec::<String>::new());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_library_is_limited_to_its_scope() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        put_document(memory, &acme(), document("shared", &["The office opens at eight."])).await;
        put_document(memory, &ana(), document("own", &["My office key is in the drawer."])).await;
        let other_tenant = Scope::user("other", "ana").unwrap();
        let mut found = find_passage_ids(memory, &ana(), "office").await;
        found.sort();
        assert_eq!(found, ["own#0", "shared#0"]);
        assert_eq!(find_passage_ids(memory, &ben(), "office").await, ["shared#0"]);
        assert_eq!(find_passage_ids(memory, &other_tenant, "office").await, Vec::<String>::new());
        assert!(!memory.remove_library_document(&ben(), "handbook", "own").await.unwrap());
        assert_eq!(
            memory.find_passages(&ana(), "another", "office", &PassageOptions::default()).await.unwrap().passages,
            []
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn passage_search_uses_only_words_if_the_embedder_fails() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let texts = ["The feline sleeps.", "The photo shows a wall."];
        let added = memory
            .put_library_document(&ana(), "handbook", document("pets", &texts), Some(&FakeEmbedder::Working))
            .await;
        assert_eq!(added.unwrap().embedded_by.as_deref(), Some("fake"));
        let with_embedder = |embedder| PassageOptions { embedder: Some(embedder), ..PassageOptions::default() };
        let found =
            memory.find_passages(&ana(), "handbook", "cat", &with_embedder(&FakeEmbedder::Working)).await.unwrap();
        assert_eq!((found.passages[0].text.as_str(), found.embedder_outcome), (texts[0], EmbedderOutcome::Used));
        let found =
            memory.find_passages(&ana(), "handbook", "wall", &with_embedder(&FakeEmbedder::Unavailable)).await.unwrap();
        assert_eq!(found.passages.len(), 1);
        assert!(matches!(found.embedder_outcome, EmbedderOutcome::Failed(_)));
        for broken in [FakeEmbedder::Unavailable, FakeEmbedder::TooFewVectors] {
            let document = document("broken", &texts);
            assert!(memory.put_library_document(&ana(), "handbook", document, Some(&broken)).await.is_err());
            // The document is listed as incomplete until it is added again.
            let listed = memory.find_library_document(&ana(), "handbook", "broken").await.unwrap().unwrap();
            assert!(!listed.is_complete);
        }
        put_document(memory, &ana(), document("broken", &texts)).await;
        assert!(memory.find_library_document(&ana(), "handbook", "broken").await.unwrap().unwrap().is_complete);
    })
    .await;
}

fn upload(id: &str, bytes: usize) -> LibraryUpload {
    LibraryUpload {
        id: id.to_owned(),
        library: "handbook".to_owned(),
        filename: format!("{id}.md"),
        purpose: "assistants".to_owned(),
        format: "markdown".to_owned(),
        bytes,
        digest: "1".to_owned(),
        created_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        state: UploadState::Receiving,
        passages: 1,
        stored_passages: 0,
        error: None,
        leased_until: "2026-01-01T00:01:00Z".parse().unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn uploads_are_stored_with_their_text_and_removed_with_their_document() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        // Pieces end at multi-byte characters, and at characters that are escaped.
        let text = "é\u{1}\"".repeat(400_000);
        let stored = memory.store_upload(&ana(), upload("a", text.len()), &text).await.unwrap();
        assert_eq!(stored.upload.state, UploadState::Processing);
        memory.store_upload(&ana(), upload("ab", 1), "x").await.unwrap();
        assert_eq!(memory.read_upload(&ana(), &stored.upload).await.unwrap().as_deref(), Some(text.as_str()));
        assert!(memory.store_upload(&ana(), upload("a", 1), "x").await.is_err(), "ids are unique");
        for other in [ben(), acme()] {
            assert_eq!(memory.find_upload(&other, "a").await.unwrap(), None);
            assert!(!memory.remove_library_document(&other, "handbook", "a").await.unwrap());
        }
        let failed = LibraryUpload { state: UploadState::Failed, ..stored.upload.clone() };
        let updated = memory.update_upload(&ana(), StoredUpload { upload: failed, ..stored.clone() }).await.unwrap();
        assert!(updated.version > stored.version);
        assert!(memory.update_upload(&ana(), stored.clone()).await.is_err(), "another process changed the upload");

        put_document(memory, &ana(), document("a", &["A walrus."])).await;
        assert!(!memory.remove_library_document(&ana(), "other", "a").await.unwrap());
        assert!(memory.remove_library_document(&ana(), "handbook", "a").await.unwrap());
        assert_eq!(find_passage_ids(memory, &ana(), "walrus").await, Vec::<String>::new());
        assert_eq!(memory.read_upload(&ana(), &stored.upload).await.unwrap(), None);
        let listed = memory.list_uploads(&ana()).await.unwrap();
        assert_eq!(listed.iter().map(|upload| upload.id.as_str()).collect::<Vec<_>>(), ["ab"]);
        assert!(memory.store_upload(&ana(), upload("c", 0), &"x".repeat(16 * 1024 * 1024 + 1)).await.is_err());
        assert_eq!(memory.find_upload(&ana(), "c").await.unwrap(), None);
        memory.erase_user(&ana(), &"ana".parse().unwrap(), Default::default()).await.unwrap();
        assert_eq!(memory.list_uploads(&ana()).await.unwrap(), []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn progress_counts_stored_passages() {
    on_all_stores(async |env: TestEnv| {
        let texts: Vec<String> = (0..150).map(|number| format!("A walrus, number {number}.")).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let reported = Mutex::new(Vec::new());
        let report = |stored| reported.lock().unwrap().push(stored);
        let animals = document("animals", &texts);
        let added = env.memory.put_library_document_with_progress(&ana(), "handbook", animals, None, &report).await;
        assert_eq!(added.unwrap().passages, 150);
        assert_eq!(*reported.lock().unwrap(), [64, 128, 150]);
    })
    .await;
}
