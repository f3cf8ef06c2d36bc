//! Conversations with the offline model.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use threadkeep::Role;

use super::test_env::{Conversation, TestEnv, corpus, data, sources, user_scope};

// S3.02, S3.04, S3.16, S3.17, S3.18, S3.22, S3.35, S3.36, S3.37
#[tokio::test]
async fn a_follow_up_reuses_the_sources_and_a_new_search_does_not() {
    let env = TestEnv::with_embedder().await;
    let conversation = env.conversation("ana").await;
    let first = conversation.turn("¿Qué es el arraigo domiciliario?").await;
    assert_eq!(data(&first, "reused_sources"), json!(false));
    assert_eq!((first.usage.embedding_calls, first.usage.model_calls), (1, 2));
    assert!(sources(&first).contains(&9_100_001), "{first:#?}");
    let second = conversation.turn("Dame más detalles").await;
    assert_eq!(data(&second, "reused_sources"), json!(true));
    assert_eq!((second.usage.embedding_calls, second.usage.model_calls), (0, 2));
    assert_eq!(sources(&second), sources(&first));
    let third = conversation.turn("Busca sobre usucapión").await;
    assert_eq!(data(&third, "reused_sources"), json!(false));
    assert_eq!(sources(&third), [9_100_021, 9_100_022]);
    assert_eq!(env.embedding_calls(), 2);
}

// S3.50, S3.29, S3.30
#[tokio::test]
async fn answers_quote_and_cite_the_sources() {
    let env = TestEnv::new().await;
    let turn = env.conversation("ana").await.turn("¿En cuánto tiempo prescribe un pagaré?").await;
    assert!(turn.reply.contains("prescribe en tres años"), "{}", turn.reply);
    let cited = "Cita: Jurisprudencia, 1a./J. 11/2024, Primera Sala, Undécima Época, 2024, registro digital 9100011, obligatoria.";
    assert!(turn.reply.contains(cited), "{}", turn.reply);
    assert!(turn.reply.contains("Corpus actualizado al 2026-05-15"), "{}", turn.reply);
    assert_eq!(turn.usage.embedding_calls, 0);
    let source = &turn.sources[0];
    assert_eq!((source.kind.as_str(), source.id.as_str()), ("tesis", "9100011"));
    assert_eq!(source.fields["epoca"], json!("Undécima Época"));
}

// S3.53
#[tokio::test]
async fn newer_epocas_and_jurisprudencia_come_first() {
    let env = TestEnv::new().await;
    let turn = env.conversation("ana").await.turn("tesis sobre arraigo domiciliario").await;
    assert_eq!(sources(&turn), [9_100_001, 9_100_003, 9_100_002, 9_100_004]);
}

// S3.21, S3.19, S3.01
#[tokio::test]
async fn more_tesis_excludes_those_already_shown() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let first = conversation.turn("jurisprudencias sobre arraigo domiciliario").await;
    assert_eq!(sources(&first), [9_100_001, 9_100_002]);
    let thread = conversation.thread;
    let env = env.restarted().await;
    let conversation = super::test_env::Conversation { thread, ..env.conversation("ana").await };
    let more = conversation.turn("dame más tesis, también aisladas").await;
    assert_eq!(sources(&more), [9_100_003, 9_100_004]);
    assert_eq!(data(&more, "discussed_tesis_count"), json!(4));
    let none = conversation.turn("dame otra tesis sobre lo mismo").await;
    assert_eq!(sources(&none), Vec::<i64>::new());
    assert!(none.reply.contains("No encontré más tesis"), "{}", none.reply);
}

// S3.51
#[tokio::test]
async fn ordinals_and_esa_refer_to_the_last_sources() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("tesis sobre arraigo domiciliario").await;
    let second = conversation.say("¿qué dice la segunda tesis?").await;
    assert!(second.contains("brazalete electrónico") && !second.contains("cuarenta días"), "{second}");
    let year = conversation.say("¿de qué año es esa?").await;
    assert!(year.contains("Año: 2022") && !year.contains("2023"), "{year}");
    let last = conversation.say("¿y la última?").await;
    assert!(last.contains("registro digital 9100004") && !last.contains("9100001"), "{last}");
}

// S3.52
#[tokio::test]
async fn filters_are_applied_with_the_topic_carried_over() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    conversation.say("¿Qué es la usucapión?").await;
    let filtered = conversation.turn("¿y en la Novena Época?").await;
    assert_eq!(data(&filtered, "intencion"), json!("NEW_SEARCH"));
    assert!(filtered.reply.contains("ya se citaron") || sources(&filtered) == [9_100_022], "{}", filtered.reply);
    let years = env.conversation("ben").await.turn("arraigo domiciliario de 2022 en adelante").await;
    assert_eq!(sources(&years), [9_100_001, 9_100_003]);
    let none = env.conversation("eva").await.turn("usucapión de la Quinta Época").await;
    assert!(none.reply.contains("con el filtro Quinta Época") && none.sources.is_empty(), "{}", none.reply);
}

// S3.52
#[tokio::test]
async fn a_tesis_of_unknown_subject_is_not_excluded() {
    let record = |id: i64, materias: serde_json::Value| json!({"idTesis": id, "rubro": "SUSPENSIÓN. EFECTOS.", "texto": "Rige hasta la sentencia.", "materias": materias});
    let records =
        [record(9_100_101, json!(["Penal"])), record(9_100_102, json!([])), record(9_100_103, json!(["Agraria"]))];
    let env = TestEnv::with(&records, None, None).await;
    let turn = env.conversation("ana").await.turn("suspensión que no sea penal").await;
    let mut found = sources(&turn);
    found.sort_unstable();
    assert_eq!(found, [9_100_102, 9_100_103], "{}", turn.reply);
    assert!(turn.reply.contains("no indica su materia"), "{}", turn.reply);
}

// S3.54
#[tokio::test]
async fn registros_and_claves_are_looked_up_exactly() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    assert_eq!(sources(&conversation.turn("localiza el registro 9100012").await), [9_100_012]);
    for clave in ["1a./J. 11/2024", "1A./J.11/2024", "1ª/J 11/2024", "1a. / J. 11 / 2024", "1aJ 11/2024"] {
        let turn = env.conversation("ben").await.turn(&format!("¿Qué dice la tesis {clave}?")).await;
        assert_eq!(sources(&turn), [9_100_011], "{clave}");
    }
    let unknown = env.conversation("eva").await.turn("busca el registro 2031567").await;
    assert!(unknown.reply.contains("No encontré en el corpus el registro 2031567"), "{}", unknown.reply);
    assert!(unknown.reply.contains("2026-05-15") && unknown.sources.is_empty(), "{}", unknown.reply);
}

// S3.55
#[tokio::test]
async fn a_courtesy_triggers_neither_search_nor_model() {
    let env = TestEnv::with_embedder().await;
    let conversation = env.conversation("ana").await;
    conversation.say("¿Qué es la usucapión?").await;
    let thanks = conversation.turn("ok, muchas gracias").await;
    assert_eq!((thanks.usage.embedding_calls, thanks.usage.model_calls, thanks.tool_calls.len()), (0, 0, 0));
    assert!(thanks.sources.is_empty());
    assert_eq!(data(&conversation.turn("explica más").await, "reused_sources"), json!(true));
}

// S3.14, S3.50
#[tokio::test]
async fn without_sources_the_answer_says_so() {
    let env = TestEnv::new().await;
    let conversation = env.conversation("ana").await;
    let turn = conversation.turn("Busca jurisprudencia sobre derecho espacial y minería lunar").await;
    assert!(turn.reply.contains("No encontré") && turn.sources.is_empty(), "{}", turn.reply);
    let follow_up = conversation.turn("explica más").await;
    assert_eq!(data(&follow_up, "reused_sources"), json!(false));
}

#[tokio::test]
async fn nothing_is_found_in_an_empty_corpus() {
    let env = TestEnv::with(&[], None, None).await;
    let reply = env.conversation("ana").await.say("¿Qué es el amparo?").await;
    assert!(reply.contains("No encontré"), "{reply}");
}

#[tokio::test]
async fn without_the_embedder_words_are_searched() {
    let env = TestEnv::with_embedder().await;
    env.embedder.as_ref().unwrap().fails.store(true, Ordering::SeqCst);
    let turn = env.conversation("ana").await.turn("¿Qué es la usucapión?").await;
    assert_eq!(sources(&turn), [9_100_021, 9_100_022]);
    assert!(turn.reply.contains("La búsqueda por significado no está disponible"), "{}", turn.reply);
}

#[tokio::test]
async fn instructions_in_a_tesis_are_only_quoted() {
    let env = TestEnv::new().await;
    let turn = env.conversation("ana").await.turn("localiza el registro 9100041").await;
    assert!(turn.reply.contains("registro digital 9100041"), "{}", turn.reply);
    let other = env.conversation("ana").await.turn("¿Qué es el aguinaldo?").await;
    assert_eq!(sources(&other), [9_100_031]);
}

// S3.40, S3.34
#[tokio::test]
async fn users_do_not_see_each_others_conversations() {
    let env = TestEnv::new().await;
    let ana = env.conversation("ana").await;
    ana.say("¿Qué es la usucapión?").await;
    let messages = env.memory.newest(&ana.scope, ana.thread, 10).await.unwrap();
    let roles: Vec<Role> = messages.iter().map(|message| message.content.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant]);
    assert!(env.memory.find_thread(&user_scope("ben"), ana.thread).await.unwrap().is_none());
}

// S3.01, S3.16, S3.34, S3.40, S3.46
#[tokio::test]
async fn conversations_and_their_isolation_are_the_same_on_postgresql() {
    let Some(server) = threadkeep_postgres_server::Server::shared() else { return };
    let database = server.create_database().await;
    let env = TestEnv::open(Some(&database.url()), &corpus(), None, Some(Arc::default())).await;
    let ana = env.conversation("ana").await;
    let first = ana.turn("¿Qué es la usucapión?").await;
    assert_eq!((sources(&first), first.usage.embedding_calls), (vec![9_100_021, 9_100_022], 1));
    let env = env.restarted().await;
    let ana = Conversation { thread: ana.thread, ..env.conversation("ana").await };
    let second = ana.turn("Dame más detalles").await;
    assert_eq!((data(&second, "reused_sources"), second.usage.embedding_calls), (json!(true), 0));
    let filtered = ana.turn("tesis de la Novena Época sobre arraigo domiciliario").await;
    assert_eq!(sources(&filtered), [9_100_004]);
    let messages = env.memory.newest(&ana.scope, ana.thread, 10).await.unwrap();
    assert_eq!(messages.len(), 6);
    assert!(env.memory.find_thread(&user_scope("ben"), ana.thread).await.unwrap().is_none());
    let ben_turn = env.conversation("ben").await.turn("explica más").await;
    assert_eq!(data(&ben_turn, "discussed_tesis_count"), json!(0));
}
