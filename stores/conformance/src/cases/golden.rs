use threadkeep_core::Scope;

use crate::conversation::Conversation;
use crate::fixtures::{acme, ana, at, thread_id, user_message};
use crate::golden::{GOLDEN, read};
use crate::run::TestEnv;

pub(super) async fn golden_files_are_readable(env: &TestEnv<'_>) {
    for golden in GOLDEN {
        let store = env.open().await;
        let chunks = golden.dump();
        for chunk in &chunks {
            let restored = store.client.restore_thread(acme().tenant_id(), thread_id(1), chunk).await;
            restored.expect("restoring works");
        }
        let scope: Scope = ana();
        let conversation = Conversation { client: store.client.clone(), scope, id: thread_id(1) };
        assert_eq!(read(&conversation).await, golden.expected(), "{}", golden.name);
        assert_eq!(conversation.dump(4).await, chunks, "{}: the dump of the restored thread differs", golden.name);
        assert_eq!(store.client.verify().await.expect("verifying works").findings, [], "{}", golden.name);
        let append = crate::fixtures::appending(vec![user_message(999, "another message")]);
        conversation.commit(&append, at(600)).await;
        let positions = conversation.thread(at(601)).await.positions;
        assert_eq!(conversation.messages(at(601)).await.last().map(|message| message.seq), Some(positions.seq));
    }
}
