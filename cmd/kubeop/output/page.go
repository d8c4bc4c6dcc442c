package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Page has titled sections of aligned lines. End writes all of it at once: a reader that has seen enough, such as grep -q, closes the pipe, and a command
// that writes on is then ended by a signal, which fails scripts with pipefail.
type Page struct {
	Paint Paint

	out   io.Writer
	page  bytes.Buffer
	lines Columns
	begun bool
}

// NewPage returns an empty page.
func NewPage(out io.Writer, paint Paint) *Page {
	return &Page{Paint: paint, out: out, lines: Columns{Gap: "  "}}
}

// Title begins a section.
func (p *Page) Title(format string, args ...any) {
	p.flush("  ")
	if p.begun {
		p.print("\n")
	}
	p.begun = true
	p.print(p.Paint.Bold(fmt.Sprintf(format, args...)) + "\n")
}

// Line adds cells to the section. Lines of one section are aligned.
func (p *Page) Line(cells ...string) { p.lines.Add(cells...) }

// Field adds a line with a label, unless the value is empty. Of a value with several lines, each is its own.
func (p *Page) Field(label, value string) {
	if value == "" {
		return
	}
	for i, line := range strings.Split(value, "\n") {
		if i > 0 {
			label = ""
		}
		p.Line(label, line)
	}
}

// End writes the page.
func (p *Page) End() error {
	p.flush("  ")
	_, err := p.out.Write(p.page.Bytes())
	return err
}

func (p *Page) flush(prefix string) {
	_ = p.lines.Write(&p.page, prefix) // A buffer takes everything.
	p.lines = Columns{Gap: p.lines.Gap}
}

func (p *Page) print(s string) { p.page.WriteString(s) }

// Table adds a table to the section.
func (p *Page) Table(table *Columns) {
	p.flush("  ")
	_ = table.Write(&p.page, "  ")
}
