//! The legal assistant, from the import to the server.

use serde_json::{Value, json};

use super::Cli;
use super::serve::Server;

fn cli_with_corpus() -> Cli {
    let cli = Cli::new();
    let record = |id: u64, rubro: &str, texto: &str| {
        let record = json!({
            "idTesis": id, "rubro": rubro, "texto": texto, "epoca": "Undécima Época", "tipoTesis": "Jurisprudencia", "anio": 2023,
        });
        record.to_string()
    };
    let lines = [
        record(9_400_001, "AMPARO. NATURALEZA DEL JUICIO.", "El amparo protege los derechos frente a la autoridad."),
        record(
            9_400_002,
            "SUSPENSIÓN PROVISIONAL. REQUISITOS.",
            "La suspensión no debe seguir perjuicio al interés social.",
        ),
    ];
    let file = cli.file("tesis.jsonl", lines.join("\n"));
    let report = cli.json(&["tesis", "import", &file]);
    assert_eq!((&report["stored"], &report["broken"]), (&json!(2), &json!(0)));
    cli
}

// S3.08, S3.18, S3.29, S3.36
#[test]
fn an_imported_corpus_is_queried_over_http() {
    let cli = cli_with_corpus();
    let server = Server::start(&cli);
    let run = |body: &Value| -> Value {
        let (status, answer) = server.ask("POST /v1/agents/tesis/run", &body.to_string()).unwrap();
        assert_eq!(status, "HTTP/1.1 200 OK", "{answer}");
        serde_json::from_str(&answer).unwrap()
    };
    let first = run(&json!({ "user_query": "¿Qué es amparo?", "user_id": "ana" }));
    assert_eq!((&first["sources_used"], &first["exit_reason"]), (&json!([9_400_001]), &json!("llm_satisfecho")));
    let fields: Vec<&String> = first["results"][0].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["id_tesis", "rubro", "tipo_tesis", "epoca", "anio", "rank_score", "distance"]);
    assert_eq!(
        (&first["embedding_calls"], &first["llm_calls"], &first["total_cost"]),
        (&json!(0), &json!(2), &json!(0.0))
    );
    let ask = |query: &str| {
        run(&json!({ "user_query": query, "user_id": "ana", "conversation_id": first["conversation_id"] }))
    };
    let second = ask("Dame más detalles");
    let expected = json!({ "reused_sources": true, "discussed_tesis_count": 1, "total_messages": 4 });
    assert_eq!((&second["metadata"], &second["iterations"]), (&expected, &json!(0)));
    let third = ask("Busca sobre suspensión");
    let expected = json!({ "reused_sources": false, "discussed_tesis_count": 2, "total_messages": 6 });
    assert_eq!((&third["metadata"], &third["sources_used"]), (&expected, &json!([9_400_002])));
    let unstored = run(&json!({ "user_query": "¿Qué es amparo?" }));
    assert_eq!((&unstored["conversation_id"], &unstored["sources_used"]), (&Value::Null, &json!([9_400_001])));
}

// S3.47
#[test]
fn stats_show_reuse_and_savings() {
    let cli = cli_with_corpus();
    for question in ["¿Qué es amparo?", "Dame más detalles"] {
        cli.out(&["ask", "tesis", question, "--thread", "web:1"]);
    }
    let stats = cli.json(&["stats", "--usd-per-search", "0.5"]);
    assert_eq!((&stats["reuse_rate"], &stats["saved_usd"]), (&json!(0.5), &json!(0.5)));
    assert_eq!(stats["messages_per_thread"], 4.0);
    let table = cli.out(&["stats", "--usd-per-search", "0.5"]);
    assert!(table.contains("50% of the answers with sources (2) needed no search"), "{table}");
    assert_eq!(cli.run(&["stats", "--usd-per-search", "much"]).code, Some(2));
}
