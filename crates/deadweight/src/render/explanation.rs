//! The description of a cost on a terminal: headings, paragraphs, lists and code from its Markdown.
//!
//! Reads only the Markdown that these descriptions use.

use super::page::{Ink, Line, Page, Sheet};

/// A description as `explain CLASS` shows it.
#[must_use]
pub fn render(id: &str, markdown: &str, page: Page) -> String {
    // Long lines of running text are hard to read.
    let mut sheet = Sheet::new(Page { width: page.width.min(96), ..page });
    let mut open = Paragraph::default();
    let mut code = false;
    for (number, line) in markdown.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            open.close(&mut sheet);
            code = !code;
            sheet.gap();
        } else if code {
            sheet.line(Line::indented(6).push(Ink::Command, line));
        } else if number == 0 {
            let mut title = Line::indented(2);
            title.push(Ink::Strong, line.trim_end_matches('.'));
            sheet.line(title.push(Ink::Faint, &format!("  ({id})")));
        } else if let Some(head) = line.strip_prefix('#') {
            open.close(&mut sheet);
            sheet.gap();
            sheet.line(Line::indented(2).push(Ink::Strong, head.trim_start_matches('#').trim()));
        } else if let Some(item) = line.trim_start().strip_prefix("- ") {
            open.close(&mut sheet);
            open = Paragraph { text: item.into(), item: true };
        } else if line.trim().is_empty() {
            open.close(&mut sheet);
            sheet.gap();
        } else {
            open.text.push(' ');
            open.text.push_str(line);
        }
    }
    open.close(&mut sheet);
    sheet.into_text()
}

/// All costs, one line each: its name and the sentence that heads its description.
#[must_use]
pub fn list<'a>(costs: impl Iterator<Item = (&'a str, String)>, page: Page) -> String {
    let costs: Vec<(&str, String)> = costs.collect();
    let widest = costs.iter().map(|(id, _)| id.len()).max().unwrap_or(0);
    let mut sheet = Sheet::new(page);
    for (id, sentence) in &costs {
        let mut line = Line::indented(2);
        line.push(Ink::Command, id).pad_to(widest + 4);
        sheet.paragraph(line, widest + 4, Ink::Plain, sentence);
    }
    sheet.into_text()
}

/// Text that may go on in the next line of the source.
#[derive(Default)]
struct Paragraph {
    text: String,
    item: bool,
}

impl Paragraph {
    fn close(&mut self, sheet: &mut Sheet) {
        let mut first = Line::indented(4);
        if self.item {
            first.push(Ink::Plain, "- ");
        }
        let indent = if self.item { 6 } else { 4 };
        if !self.text.trim().is_empty() {
            sheet.paragraph(first, indent, Ink::Plain, &self.text.replace('`', ""));
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const PAGE: Page = Page { width: 50, colour: false, unicode: true };

    /// A first line without indentation keeps the text's own from being trimmed.
    fn framed(text: &str) -> String {
        format!("page:\n{text}")
    }

    #[test]
    fn a_description_becomes_a_page() {
        let markdown = "Tiny reads.\n\n# What it is\nA file is read in many small pieces, each \
                        through\nthe `kernel`.\n\n# What to do\n- Read blocks.\n- Or map\n  the \
                        file.\n\n```\nlet r = BufReader::new(f);\n```\n";
        expect![[r#"
            page:
              Tiny reads  (tiny-reads)

              What it is
                A file is read in many small pieces, each
                through the kernel.

              What to do
                - Read blocks.
                - Or map the file.

                  let r = BufReader::new(f);
        "#]]
        .assert_eq(&framed(&render("tiny-reads", markdown, PAGE)));
    }

    #[test]
    fn the_list_is_aligned_and_breaks_between_words() {
        let costs = [
            ("a", "Short.".to_owned()),
            ("long-name", "A sentence that needs two lines, it does.".to_owned()),
        ];
        expect![[r#"
            page:
              a          Short.
              long-name  A sentence that needs two lines, it
                         does.
        "#]]
        .assert_eq(&framed(&list(costs.into_iter(), PAGE)));
    }
}
