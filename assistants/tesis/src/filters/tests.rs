use super::*;

fn check(question: &str, expected: Filters, rest: &str) {
    let found = split(question);
    assert_eq!((&found.filters, found.rest.as_str()), (&expected, rest), "{question}");
}

#[test]
fn filters_are_read_from_words() {
    let none = Filters::default;
    let penal = || vec!["penal".to_owned()];
    check("búscame algo de la Novena Época", Filters { epocas: vec![9], ..none() }, "búscame algo");
    check("¿y en la Décima Época?", Filters { epocas: vec![10], ..none() }, "¿y");
    let both = Filters { epocas: vec![10, 11], ..none() };
    check("tesis de la Décima y Undécima Épocas sobre amparo", both, "tesis sobre amparo");
    let binding = || Filters { tipo: Some("Jurisprudencia".to_owned()), ..none() };
    check("sólo jurisprudencia, no aisladas", binding(), "");
    check("jurisprudencias sobre despido", binding(), "sobre despido");
    check("Busca jurisprudencia sobre suspensión", none(), "Busca jurisprudencia sobre suspensión");
    check(
        "tesis aisladas de 2023",
        Filters { tipo: Some("Aislada".to_owned()), years: Some((2023, 2023)), ..none() },
        "tesis",
    );
    check("despido de 2023 en adelante", Filters { years: Some((2023, LAST_YEAR)), ..none() }, "despido");
    check("despido a partir de 2023", Filters { years: Some((2023, LAST_YEAR)), ..none() }, "despido");
    check("despido posteriores a 2022", Filters { years: Some((2023, LAST_YEAR)), ..none() }, "despido");
    check("despido antes de 2010", Filters { years: Some((FIRST_YEAR, 2009)), ..none() }, "despido");
    check("despido entre 2015 y 2020", Filters { years: Some((2015, 2020)), ..none() }, "despido");
    check("materia penal antes del 2010", Filters { materias: penal(), years: Some((FIRST_YEAR, 2009)), ..none() }, "");
    check("entonces penales de la Décima", Filters { materias: penal(), epocas: vec![10], ..none() }, "entonces");
    check("prescripción de la acción penal", none(), "prescripción de la acción penal");
    let recent = Filters { materias: vec!["laboral".to_owned()], years: Some((2021, LAST_YEAR)), ..none() };
    check("jurisprudencia laboral posterior a 2020", recent, "jurisprudencia");
    check("sobre despido, que no sean aisladas", binding(), "sobre despido,");
    check("tesis de alimentos, aisladas no", binding(), "tesis de alimentos,");
    check("otra sobre despido, pero jurisprudencia", binding(), "otra sobre despido, pero");
    let isolated = || Filters { tipo: Some("Aislada".to_owned()), ..none() };
    check("descarta las aisladas", binding(), "descarta");
    check("esa es aislada, ¿no?", none(), "esa es aislada, ¿no?");
    check("¿cuál es jurisprudencia y cuál aislada?", none(), "¿cuál es jurisprudencia y cuál aislada?");
    check("jurisprudencia nada más", binding(), "nada más");
    check("¿cuál no es jurisprudencia?", isolated(), "¿cuál no");
    check("nada de aisladas", binding(), "nada");
    let other_than_penal = split("suspensión, pero nada penal").filters;
    assert_eq!(other_than_penal.describe(), "sin materia penal");
    check("¿qué tienen en común?", none(), "¿qué tienen en común?");
    check("al menos dime qué jurisprudencia hay", none(), "al menos dime qué jurisprudencia hay");
    check(
        "¿administrativa, igual novena?",
        Filters { materias: vec!["administrativa".to_owned()], epocas: vec![9], ..none() },
        "igual",
    );
    check("una que sea penal", Filters { materias: penal(), ..none() }, "una");
    check("despido de 2020 para acá", Filters { years: Some((2020, LAST_YEAR)), ..none() }, "despido");
    check("¿jurisprudencia o aislada?", none(), "¿jurisprudencia o aislada?");
    check("¿2024?", Filters { years: Some((2024, 2024)), ..none() }, "");
    check("ahora 2015", Filters { years: Some((2015, 2015)), ..none() }, "ahora");
    check(
        "Búscame algo penal pero de la Novena",
        Filters { materias: penal(), epocas: vec![9], ..none() },
        "Búscame algo pero",
    );
    let without_second = split("materia laboral, pero que no sea de la Segunda Sala").filters;
    assert_eq!(without_second.describe(), "materia laboral, sin segunda sala");
    let courts = |question: &str| split(question).filters.instancias;
    let excluded = split("despido, menos de la Primera Sala y de la Segunda Sala").filters;
    assert_eq!(excluded.without.instancias, ["primera_sala", "segunda_sala"]);
    assert_eq!(courts("despido de la Primera Sala, excepto de la Segunda Sala"), ["primera_sala"]);
    check("criterios clasificados en materia penal", Filters { materias: penal(), ..none() }, "criterios");
    check("tesis publicadas en 2024", Filters { years: Some((2024, 2024)), ..none() }, "tesis");
    check("y en materia penal?", Filters { materias: vec!["penal".to_owned()], ..none() }, "y");
    let without_tenth = Exclusions { epocas: vec![10], ..Exclusions::default() };
    check("Excluye los de la Décima", Filters { without: without_tenth, ..none() }, "Excluye");
    let colegiados = |materia: &str| Filters {
        instancias: vec!["tribunales_colegiados".to_owned()],
        materias: vec![materia.to_owned()],
        ..none()
    };
    check("Criterios de Tribunales Colegiados de Circuito en materia laboral", colegiados("laboral"), "Criterios");
    check("¿y colegiados en mercantil?", colegiados("mercantil"), "¿y");
    let pleno = Filters { instancias: vec!["pleno".to_owned()], ..none() };
    check("hay algo del Pleno de la Corte?", pleno, "hay algo");
    let first = Filters { instancias: vec!["primera_sala".to_owned()], ..none() };
    check("tesis de la Primera Sala sobre alimentos", first, "tesis sobre alimentos");
}

#[test]
fn filters_are_described() {
    let filters = split("jurisprudencias de la Undécima Época de 2023 en adelante").filters;
    assert_eq!(filters.describe(), "Undécima Época, Jurisprudencia, desde 2023");
    assert_eq!(filters.to_query().len(), 3);
}

#[test]
fn filters_exclude_what_a_message_rules_out() {
    for (question, expected) in [
        ("alguna que no sea del 2025", "sin el año 2025"),
        ("quítame por favor las de la Décima", "sin la Décima Época"),
        ("suspensión, sin penal ni laboral", "sin materia penal, sin materia laboral"),
        ("amparo menos en materia penal y civil", "sin materia penal, sin materia civil"),
        ("no me pongas penales", "sin materia penal"),
        ("despido pero no de la Segunda Sala", "sin segunda sala"),
        ("que no sean anteriores a 2015", "excepto hasta 2014"),
        ("no, la de la Segunda Sala", "segunda sala"),
        ("¿no hay nada de la Décima Época?", "Décima Época"),
        ("suspensión sin garantía en materia penal", "materia penal"),
        ("¿Y de la Quinta?", "Quinta Época"),
        ("¿algo de la sexta?", "Sexta Época"),
        ("la clave de la quinta", ""),
        ("¿y la quinta?", ""),
        ("qué hay en materia fiscal / administrativa", "materia administrativa"),
        ("déjame puras obligatorias", "Jurisprudencia"),
        ("¿son obligatorias?", ""),
    ] {
        assert_eq!(split(question).filters.describe(), expected, "{question}");
    }
}

#[test]
fn what_is_unknown_about_a_tesis_is_not_excluded() {
    let filters = split("que no sea penal").filters;
    let tesis = |materias: &[&str]| Tesis {
        materias: materias.iter().map(|materia| (*materia).to_owned()).collect(),
        ..Tesis::default()
    };
    for (materias, passes, unknown) in [
        (&["Penal"][..], false, &[][..]),
        (&["Común", "Penal"], false, &[]),
        (&["Civil"], true, &[]),
        (&["Agraria"], true, &[]),
        (&[], true, &["su materia"]),
    ] {
        let tesis = tesis(materias);
        assert_eq!(filters.passes(&tesis), passes, "{materias:?}");
        assert_eq!(filters.without.unknown(&tesis), unknown, "{materias:?}");
    }
}
