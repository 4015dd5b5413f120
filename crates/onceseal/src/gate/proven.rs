//! Questions to which nothing must be the answer, with the proof that each would find something: a row is put into
//! copies of its tables, which stand before the tables in the gate's own session and nowhere else, and must be found
//! there. A question that finds nothing whatever the tables hold fails its check.

use guard::canary::{RUN, contains_run};

use super::check::Check;
use super::database::Database;

/// One question.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// What there must be none of.
    pub what: &'a str,
    /// Finds it, a row each.
    pub sql: &'a str,
    /// The tables that the plants change.
    pub tables: &'a [&'a str],
    /// Statements that each put one in; past all rules, which copies have not.
    pub plants: &'a [&'a str],
}

impl Question<'_> {
    /// Proves the question and asks it.
    ///
    /// # Errors
    /// There is no plant, or the engine refuses a statement.
    pub async fn none(&self, database: &Database, check: &mut Check) -> Result<(), String> {
        let Self { what, sql, tables, plants } = self;
        if plants.is_empty() {
            return Err(format!("nothing proves that {what} would be found"));
        }
        for plant in *plants {
            let found = database.planted(tables, plant, sql).await?;
            check.so(format!("{what}: a planted one is found"), !found.is_empty());
        }
        check.equal(*what, &Vec::<String>::new(), &database.texts(sql).await?);
        Ok(())
    }
}

/// Columns of a table in which no part of a credential may stand.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// For people.
    pub what: &'static str,
    /// Which.
    pub table: &'static str,
    /// All that is read: text, or JSON.
    pub columns: &'static [&'static str],
}

impl Kept {
    fn sql(&self) -> String {
        // A concatenation with nothing in it would be nothing, and hide what stands beside it.
        let columns: Vec<String> =
            self.columns.iter().map(|column| format!("coalesce(cast({column} as text), '')")).collect();
        format!("select {} from {}", columns.join(" || ' ' || "), self.table)
    }

    fn holds(rows: &[String], value: &str) -> bool {
        rows.iter().any(|row| contains_run(row, value, RUN))
    }

    /// Nothing of this value stands there.
    ///
    /// # Errors
    /// The table can't be read.
    pub async fn without(&self, database: &Database, check: &mut Check, value: &str) -> Result<(), String> {
        let rows = database.texts(&self.sql()).await?;
        check.so(format!("there are rows in the {}", self.what), !rows.is_empty());
        check.so(format!("no part of it in the {}", self.what), !Self::holds(&rows, value));
        Ok(())
    }

    /// It would be found in each column.
    ///
    /// # Errors
    /// The engine refuses a statement.
    pub async fn proven(&self, database: &Database, check: &mut Check, value: &str) -> Result<(), String> {
        let Self { what, table, columns } = self;
        for column in *columns {
            let plant = format!(
                "update {table} set {column} = '{{\"x\":\"{value}\"}}' where id = (select max(id) from {table})"
            );
            let rows = database.planted(&[table], &plant, &self.sql()).await?;
            check.so(format!("{what}: planted in {column}, it is found"), Self::holds(&rows, value));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::check::Verdict;

    fn database() -> (tempfile::TempDir, Database) {
        let folder = tempfile::tempdir().unwrap();
        let opened = Database::sqlite(folder.path()).unwrap();
        (folder, opened)
    }

    async fn verdict(question: Question<'_>, database: &Database) -> Verdict {
        let mut check = Check::default();
        check.value("rows", 1);
        check.broke = question.none(database, &mut check).await.err();
        check.verdict()
    }

    #[tokio::test]
    async fn a_question_that_can_find_nothing_fails_and_what_is_planted_is_gone_after_it() {
        let (_folder, database) = database();
        database
            .run("create table t (word text check (word <> 'bad')); insert into t values ('good')")
            .await
            .unwrap();
        let asks =
            |sql| Question { what: "bad words", sql, tables: &["t"], plants: &["update t set word = 'bad'"] };
        let (right, wrong) =
            (asks("select word from t where word = 'bad'"), asks("select word from t where word = 'BAD'"));
        assert_eq!(verdict(right.clone(), &database).await, Verdict::Passed);
        assert_eq!(verdict(wrong, &database).await, Verdict::Failed);
        assert_eq!(verdict(Question { plants: &[], ..right.clone() }, &database).await, Verdict::Failed);
        assert_eq!(database.texts("select word from t").await.unwrap(), ["good"]);
        let found = asks("select word from t where word = 'good'");
        assert_eq!(verdict(Question { plants: &["select 1"], ..found }, &database).await, Verdict::Failed);
    }

    #[tokio::test]
    async fn a_column_that_hides_what_stands_in_another_is_found_out() {
        const KEPT: Kept = Kept { what: "table", table: "t", columns: &["one", "two"] };
        let (_folder, database) = database();
        let made = "create table t (id integer primary key, one text, two text); insert into t values (1, 'abcdefgh', null)";
        database.run(made).await.unwrap();
        let mut check = Check::default();
        check.value("rows", 1);
        KEPT.proven(&database, &mut check, "ijklmnop").await.unwrap();
        KEPT.without(&database, &mut check, "ijklmnop").await.unwrap();
        assert_eq!(check.verdict(), Verdict::Passed);
        KEPT.without(&database, &mut check, "abcdefgh").await.unwrap();
        assert_eq!(check.verdict(), Verdict::Failed);
    }
}
