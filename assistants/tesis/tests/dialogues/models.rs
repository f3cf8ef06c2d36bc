//! The assistant with scripted language models.

use std::sync::Arc;

use serde_json::json;
use threadkeep::models::{Failure, Reply, ScriptedModel};
use threadkeep::{ChatMessage, ChatRequest, Role};

use super::test_env::{TestEnv, corpus, data, sources};

fn system(request: &ChatRequest) -> String {
    let texts = request.messages.iter().filter(|message| message.role == Role::System);
    texts.map(ChatMessage::plain_text).collect::<Vec<_>>().join("\n")
}

fn satisfied() -> Reply {
    Reply::text(r#"{"decision": "SATISFECHO", "razon": "bastan"}"#)
}

// S3.03, S3.35, S3.50
#[tokio::test]
async fn the_model_receives_the_sources_and_the_conversation() {
    let model = ScriptedModel::new()
        .step("judges", |request| match system(request).contains("\"registro\":9100021") {
            true => Ok(satisfied()),
            false => Err(system(request)),
        })
        .step("answers", |_| {
            Ok(Reply::text("La usucapión exige posesión pacífica (registro 9100021). Es suficiente con eso."))
        })
        .step("judges the follow-up", |_| Ok(satisfied()))
        .step("answers the follow-up", |request| {
            let said: Vec<String> = request.messages.iter().map(ChatMessage::plain_text).collect();
            match said.iter().any(|text| text.contains("¿Qué es la usucapión?")) && system(request).contains("9100021")
            {
                true => {
                    Ok(Reply::text("El plazo es de cinco años con buena fe, según el registro 9100021 citado antes."))
                }
                false => Err(said.join("\n")),
            }
        });
    let env = TestEnv::scripted(model).await;
    let conversation = env.conversation("ana").await;
    let first = conversation.turn("¿Qué es la usucapión?").await;
    assert_eq!((first.usage.model_calls, data(&first, "exit_reason")), (2, json!("llm_satisfecho")));
    assert_eq!(data(&first, "llm_reasoning"), json!("no hay fuentes previas; bastan"));
    let second = conversation.turn("explica más").await;
    assert_eq!((second.usage.model_calls, data(&second, "reused_sources")), (2, json!(true)));
    assert!(second.reply.contains("cinco años"), "{}", second.reply);
}

// S3.09
#[tokio::test]
async fn searches_are_refined_up_to_the_maximum() {
    let refine = |query: &str| format!(r#"{{"decision": "REFINAR", "consulta": "{query}", "razon": "faltan"}}"#);
    let (one, two) = (refine("pagaré a la vista"), refine("aguinaldo"));
    let model = ScriptedModel::new()
        .step("refines", move |_| Ok(Reply::text(one.clone())))
        .step("refines again", move |_| Ok(Reply::text(two.clone())))
        .step("repeats itself", |_| Ok(Reply::text(r#"{"decision": "AMPLIAR", "consulta": "el aguinaldo"}"#)))
        .step("answers", |_| Ok(Reply::text("Las fuentes tratan la usucapión, el pagaré y el aguinaldo, sin más.")));
    let env = TestEnv::scripted(model).await;
    let turn = env.conversation("ana").await.turn("¿Qué es la usucapión?").await;
    assert_eq!((data(&turn, "iterations"), data(&turn, "exit_reason")), (json!(3), json!("consulta_redundante")));
    assert_eq!(turn.usage.model_calls, 4);
    assert!(sources(&turn).contains(&9_100_021) && sources(&turn).contains(&9_100_012), "{:?}", sources(&turn));
}

// S3.50
#[tokio::test]
async fn invented_citations_never_reach_the_user() {
    for invention in [
        "Procede conforme al registro 2999999.",
        "Véase la jurisprudencia 1a./J. 77/2020 (10a.).",
        "La tesis «LEGÍTIMA DEFENSA PRIVILEGIADA EN TODO CASO CIVIL.» lo confirma.",
        "Registro digital: 2,999,999",
        "Así lo dice P./J. 99/2019 (10a.), registro 2 999 999.",
        "Consulta VII.1o.C.6 C (12a.) para más detalles.",
        "DESPIDO INJUSTIFICADO. CARGA DE LA PRUEBA DEL PATRÓN DEMANDADO.",
    ] {
        let valid = "La usucapión exige una posesión pacífica, continua y pública, según el registro 9100021.";
        for answer in [invention.to_owned(), format!("{valid} {invention}"), format!("- {invention}\n- {valid}")] {
            let model = ScriptedModel::new().step("judges", |_| Ok(satisfied())).says(answer.clone());
            let env = TestEnv::scripted(model).await;
            let reply = env.conversation("ana").await.say("¿Qué es la usucapión?").await;
            for absent in ["2999999", "2,999,999", "77/2020", "99/2019", "VII.1o", "LEGÍTIMA", "DESPIDO"] {
                assert!(!reply.contains(absent), "{answer} became {reply}");
            }
            assert!(reply.contains("9100021"), "{answer} became {reply}");
        }
    }
}

// S3.41
#[tokio::test]
async fn a_failing_model_is_replaced_by_quotations() {
    let model = ScriptedModel::new().step("judges", |_| Ok(satisfied())).fails(Failure::TimedOut);
    let env = TestEnv::scripted(model).await;
    let conversation = env.conversation("ana").await;
    let turn = conversation.turn("¿Qué es la usucapión?").await;
    assert!(turn.reply.contains("El modelo de lenguaje no está disponible"), "{}", turn.reply);
    assert!(turn.reply.contains("registro digital 9100021"), "{}", turn.reply);
    assert_eq!(data(&turn, "exit_reason"), json!("modelo_no_disponible"));
}

#[tokio::test]
async fn a_judgement_that_is_not_json_ends_the_search() {
    let model =
        ScriptedModel::new().says("No sé.").says("La usucapión exige una posesión pacífica, dice el registro 9100021.");
    let env = TestEnv::scripted(model).await;
    let turn = env.conversation("ana").await.turn("¿Qué es la usucapión?").await;
    assert_eq!((data(&turn, "iterations"), turn.usage.model_calls), (json!(1), 2));
}

// S3.42: a model is called only if the rules cannot decide.
#[tokio::test]
async fn the_model_decides_ambiguous_intents() {
    for (intent, is_reused) in [("REUSE", true), ("NEW_SEARCH", false)] {
        let decision = format!(r#"{{"intencion": "{intent}", "razon": "así lo pide"}}"#);
        let model = ScriptedModel::new()
            .step("judges", |_| Ok(satisfied()))
            .step("answers", |_| Ok(Reply::text("La usucapión exige posesión pacífica, según el registro 9100021.")))
            .step("classifies", move |request| match system(request).contains("\"tarea\":\"clasificar\"") {
                true => Ok(Reply::text(&decision)),
                false => Err(system(request)),
            })
            .step("judges again", |_| Ok(satisfied()))
            .step("answers again", |_| {
                Ok(Reply::text("La posesión debe ser pacífica y continua, según el registro 9100021 citado."))
            });
        let env = TestEnv::scripted(model).await;
        let conversation = env.conversation("ana").await;
        conversation.turn("¿Qué es la usucapión?").await;
        let second = conversation.turn("Explica la usucapión colectiva").await;
        assert_eq!(data(&second, "reused_sources"), json!(is_reused), "{second:#?}");
        assert_eq!(second.usage.model_calls, 3);
        assert!(data(&second, "llm_reasoning").as_str().unwrap().contains("así lo pide"));
    }
}

// S3.42
#[tokio::test]
async fn rules_decide_if_the_model_does_not() {
    let model = ScriptedModel::new()
        .step("judges", |_| Ok(satisfied()))
        .step("answers", |_| Ok(Reply::text("La usucapión exige posesión pacífica, según el registro 9100021.")))
        .step("does not classify", |_| Ok(Reply::text("No sé.")))
        .step("judges again", |_| Ok(satisfied()))
        .step("answers again", |_| {
            Ok(Reply::text("La posesión debe ser pacífica y continua, según el registro 9100021 citado."))
        });
    let env = TestEnv::scripted(model).await;
    let conversation = env.conversation("ana").await;
    conversation.turn("¿Qué es la usucapión?").await;
    let second = conversation.turn("Explica la usucapión colectiva").await;
    assert_eq!(data(&second, "reused_sources"), json!(false));
    assert!(data(&second, "llm_reasoning").as_str().unwrap().contains("el modelo no decidió la intención"));
}

// S3.44: the query of an ambiguous message is compared with the sources at hand, without a further embedder call.
#[tokio::test]
async fn nearness_to_the_sources_decides_ambiguous_intents() {
    let env = TestEnv::with_embedder().await;
    let conversation = env.conversation("ana").await;
    conversation.turn("¿Qué es la usucapión?").await;
    let near = conversation.turn("Explica la usucapión colectiva y la posesión pacífica, continua y pública").await;
    assert_eq!((data(&near, "reused_sources"), near.usage.embedding_calls), (json!(true), 1));
    assert!(data(&near, "llm_reasoning").as_str().unwrap().contains("cercanía de temas"), "{near:#?}");
    let far = conversation.turn("Explica el aguinaldo").await;
    assert_eq!((data(&far, "reused_sources"), far.usage.embedding_calls), (json!(false), 1));
    assert_eq!(sources(&far), [9_100_031]);
    assert_eq!(env.embedding_calls(), 3);
}

// S3.42, S3.44: a language model is asked only if nearness does not decide.
#[tokio::test]
async fn a_model_is_not_called_if_nearness_decides() {
    let answer = "La usucapión exige posesión pacífica, según el registro 9100021.";
    let model = ScriptedModel::new()
        .step("judges", |_| Ok(satisfied()))
        .step("answers", move |_| Ok(Reply::text(answer)))
        .step("judges again", |_| Ok(satisfied()))
        .step("answers again", move |_| Ok(Reply::text(answer)));
    let env = TestEnv::with(&corpus(), Some(Arc::new(model)), Some(Arc::default())).await;
    let conversation = env.conversation("ana").await;
    conversation.turn("¿Qué es la usucapión?").await;
    let question = "Explica la usucapión colectiva y la posesión pacífica, continua y pública";
    let second = conversation.turn(question).await;
    assert_eq!((second.usage.model_calls, data(&second, "reused_sources")), (2, json!(true)), "{second:#?}");
}
