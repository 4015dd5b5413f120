//! What docs/operations.md tells people to ask can be asked.

use testkit::postgres;

use crate::home::Home;

#[test]
fn the_questions_by_night_fit_the_schema() {
    let home = Home::new();
    assert_eq!(home.run(&["migrate", "up"]).code(), 0);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, night) = page.split_once("## By night").unwrap();
    let asked: Vec<&str> =
        night.split("```sql\n").skip(1).filter_map(|text| text.split("```").next()).collect();
    assert!(asked.iter().map(|sql| sql.matches("select ").count()).sum::<usize>() > 10);
    for sql in asked {
        postgres::execute(&postgres::beside(&home.path("")).unwrap().direct, sql);
    }
}
