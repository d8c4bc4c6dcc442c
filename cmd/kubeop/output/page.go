package output

import (
	"fmt"
	"io"
	"strings"
)

// Page writes titled sections of aligned lines. The first error of the writer is kept for End, and nothing is written after it.
type Page struct {
	Paint Paint

	out   io.Writer
	lines Columns
	err   error
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

// End writes what is left and returns the first error.
func (p *Page) End() error {
	p.flush("  ")
	return p.err
}

func (p *Page) flush(prefix string) {
	if p.err == nil {
		p.err = p.lines.Write(p.out, prefix)
	}
	p.lines = Columns{Gap: p.lines.Gap}
}

func (p *Page) print(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.out, s)
	}
}

// Table adds a table to the section.
func (p *Page) Table(table *Columns) {
	p.flush("  ")
	if p.err == nil {
		p.err = table.Write(p.out, "  ")
	}
}
