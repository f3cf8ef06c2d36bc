//! File imports.

use std::io::Write;

use serde_json::json;
use threadkeep::Scope;
use threadkeep_tesis::{ClaveKey, Item, SearchRequest};

use super::test_env::{TestEnv, tenant, tesis, user_scope};

fn lines(count: i64) -> String {
    let line = |id: i64| {
        let rubro = format!("CONTRATO NÚMERO {id}. VALIDEZ.");
        tesis(9_200_000 + id, &rubro, "El contrato es válido.", "Undécima Época", "Jurisprudencia", 2023, "Civil")
            .to_string()
    };
    (1..=count).map(|id| line(id) + "\n").collect()
}

#[tokio::test]
async fn a_second_import_changes_nothing_and_an_interrupted_one_continues() {
    let env = TestEnv::with(&[], None, None).await;
    let first = env.import("part.jsonl", lines(1_200).as_bytes()).await.unwrap();
    assert_eq!((first.records, first.stored, first.unchanged), (1_200, 1_200, 0));
    let again = env.import("part.jsonl", lines(1_200).as_bytes()).await.unwrap();
    assert_eq!((again.stored, again.unchanged), (0, 1_200));
    let rest = env.import("all.jsonl", lines(1_500).as_bytes()).await.unwrap();
    assert_eq!((rest.stored, rest.unchanged), (300, 1_200));
}

#[tokio::test]
async fn broken_records_are_reported_by_line() {
    let env = TestEnv::with(&[], None, None).await;
    let good = tesis(9_200_001, "CONTRATO. VALIDEZ.", "Texto.", "11a. Época", "Aislada", 2023, "Civil");
    let content = format!("{good}\n\nnot json\n{}\n{}\n", json!({"rubro": "SIN NÚMERO"}), json!({"x": 1}));
    let report = env.import("mixed.jsonl", content.as_bytes()).await.unwrap();
    assert_eq!((report.records, report.stored, report.broken), (1, 1, 3));
    for (problem, expected) in
        report.problems.iter().zip(["line 3: not JSON", "line 4: no registro digital", "line 5: neither"])
    {
        assert!(problem.contains("mixed.jsonl") && problem.contains(expected), "{problem}");
    }
}

#[tokio::test]
async fn all_formats_are_read() {
    let env = TestEnv::with(&[], None, None).await;
    let record = |id: i64| tesis(id, &format!("RUBRO {id}."), "Texto.", "Novena Época", "Aislada", 2003, "Civil");
    let array = json!([record(9_300_001), record(9_300_002)]).to_string();
    assert_eq!(env.import("a.json", array.as_bytes()).await.unwrap().stored, 2);
    let answer = json!({"total": 1, "documents": [record(9_300_003)], "totalElements": 1}).to_string();
    assert_eq!(env.import("b.json", answer.as_bytes()).await.unwrap().stored, 1);
    assert_eq!(env.import("c.json", record(9_300_004).to_string().as_bytes()).await.unwrap().stored, 1);
    let table = "registro_digital,rubro,texto,epoca,tipoTesis,materias,anio\n9300005,\"RUBRO, CON COMA.\",,Décima Época,Jurisprudencia,\"Civil, Penal\",2015\n,SIN NÚMERO,,,,,\n";
    let report = env.import("d.csv", table.as_bytes()).await.unwrap();
    assert_eq!((report.stored, report.broken), (1, 1));
    assert!(report.problems[0].contains("line 3"), "{:?}", report.problems);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(record(9_300_006).to_string().as_bytes()).unwrap();
    assert_eq!(env.import("e.jsonl.gz", &gzip.finish().unwrap()).await.unwrap().stored, 1);
    let found = env.corpus().by_registro(&user_scope("ana"), &[9_300_005, 9_300_006]).await.unwrap();
    assert_eq!(found.iter().map(Item::title).collect::<Vec<_>>(), ["RUBRO, CON COMA.", "RUBRO 9300006."]);
    for (name, content, expected) in
        [("f.txt", "x", "unknown format"), ("g.json", "[{\"a\": ", "not JSON"), ("h.json", "", "not JSON")]
    {
        let error = env.import(name, content.as_bytes()).await.unwrap_err();
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn statutes_and_decisions_are_found() {
    let env = TestEnv::with(&[], None, None).await;
    let statute = json!({"law_id": "amparo", "articles": [
        {"number": "Artículo 1o", "type": "article", "content": "Artículo 1o. El juicio de amparo protege derechos humanos."},
        {"number": "Artículo 98", "type": "article", "content": "Artículo 98. El plazo para la interposición del recurso de queja es de cinco días."},
    ]});
    assert_eq!(env.import("ley.json", statute.to_string().as_bytes()).await.unwrap().stored, 2);
    let decision = json!({"_id": "d1", "title": "Sentencia 1", "text": "AMPARO EN REVISIÓN 1/2024\n\nLa compensación económica procede al divorcio.", "court": "SCJN", "date": null});
    assert_eq!(env.import("d.jsonl", decision.to_string().as_bytes()).await.unwrap().stored, 1);
    let search = async |query: &str| {
        let request = SearchRequest { query: query.to_owned(), limit: 5, ..SearchRequest::default() };
        let found = env.corpus().search(&user_scope("ana"), &request).await.unwrap();
        found.iter().map(|found| found.item.title()).collect::<Vec<_>>()
    };
    assert_eq!(search("plazo para interponer el recurso de queja").await[0], "Ley de Amparo, Artículo 98");
    let decision = "AMPARO EN REVISIÓN 1/2024 (Sentencia 1), párrafos 1-2";
    assert_eq!(search("compensación económica en el divorcio").await, [decision]);
    let turn = env.conversation("ana").await.turn("¿Cuál es el plazo para interponer el recurso de queja?").await;
    assert!(turn.reply.contains("Cita: Ley de Amparo, Artículo 98."), "{}", turn.reply);
    assert_eq!(turn.sources[0].kind, "articulo");
}

// S3.40
#[tokio::test]
async fn the_corpus_belongs_to_the_tenant() {
    let env = TestEnv::new().await;
    let clave = ClaveKey::of("1a./J. 11/2024");
    assert_eq!(env.corpus().by_clave(&user_scope("ana"), std::slice::from_ref(&clave)).await.unwrap().len(), 1);
    let other = Scope::user("other", "ana").unwrap();
    assert_eq!(env.corpus().by_clave(&other, &[clave]).await.unwrap().len(), 0);
    let user = threadkeep::UserId::new("ana").unwrap();
    env.memory.erase_user(&tenant(), &user, threadkeep::EraseOptions::default()).await.unwrap();
    assert_eq!(env.corpus().by_registro(&tenant(), &[9_100_001]).await.unwrap().len(), 1);
}
