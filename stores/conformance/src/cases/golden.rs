use threadkeep_core::Scope;

use crate::conversation::Conversation;
use crate::given::{acme, ana, at, says, thread_id};
use crate::golden::{GOLDEN, read};
use crate::run::Stage;

pub(super) async fn what_was_written_is_read(stage: &Stage<'_>) {
    for golden in GOLDEN {
        let subject = stage.open().await;
        let chunks = golden.dump();
        for chunk in &chunks {
            let restored = subject.client.restore_thread(acme().tenant_id(), thread_id(1), chunk).await;
            restored.expect("restoring works");
        }
        let scope: Scope = ana();
        let conversation = Conversation { client: subject.client.clone(), scope, id: thread_id(1) };
        assert_eq!(read(&conversation).await, golden.expected(), "{}", golden.name);
        assert_eq!(conversation.dump(4).await, chunks, "{} changes on its way through", golden.name);
        assert_eq!(subject.client.verify().await.expect("verifying works").findings, [], "{}", golden.name);
        let said = crate::given::adds(vec![says(999, "and on it goes")]);
        conversation.commit(&said, at(600)).await;
        let positions = conversation.thread(at(601)).await.positions;
        assert_eq!(conversation.messages(at(601)).await.last().map(|message| message.seq), Some(positions.seq));
    }
}
