//! `docs/PROTOCOL.md` has the table of APIs as the code has it.

use std::fmt::Write;

use stratalog::protocol::ApiKey;

#[test]
fn the_table_of_the_document_is_that_of_the_code() {
    let mut table = String::from("| key | API | read and written | flexible from | advertised |\n");
    table.push_str("| ---: | --- | --- | ---: | --- |\n");
    for api in ApiKey::ALL {
        let flexible = api.flexible_from().map_or("-".to_owned(), |version| version.to_string());
        let advertised = api.advertised().map_or("-".to_owned(), |versions| versions.to_string());
        writeln!(table, "| {} | {api} | {} | {flexible} | {advertised} |", api.key(), api.versions())
            .unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/PROTOCOL.md");
    let document = std::fs::read_to_string(path).unwrap();
    assert!(document.contains(&table), "put this table into docs/PROTOCOL.md:\n\n{table}");
}
