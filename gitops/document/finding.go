// Package document parses YAML documents, limits their expanded size, and knows the position of each field.
package document

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/gitops/code"
)

// maxFindings is how many findings are reported about one file.
const maxFindings = 20

// Document is one parsed YAML document.
type Document struct {
	File string
	// Value is the document as JSON values. It may be incomplete if there are findings.
	Value    map[string]any
	Findings []Finding
	// Size of the file in bytes.
	Size int

	root *yaml.Node
}

// Finding is an error in a file. It does not say which object is affected.
type Finding struct {
	File string
	// Position in the file; the zero Position if the finding is about the file as a whole.
	yamlcheck.Position
	// Code names the kind of problem.
	Code code.Code
	// Why says what is wrong and what to do.
	Why string
	// Misplaced: the file has the name of a file that declares an object, but no object is read from its folder. An object that the commit no longer
	// declares may have been moved here by mistake.
	Misplaced bool
	// Err is the error of the store if the file could not be read: reading again may help. Nil if only another commit helps.
	Err error
}

// Place returns "file:line:column", without the parts that are not known.
func (f Finding) Place() string { return f.In(f.File) }

// Add reports a finding at a position.
func (d *Document) Add(kind code.Code, at yamlcheck.Position, format string, args ...any) {
	switch {
	case d.Full():
	case len(d.Findings) == maxFindings:
		d.Findings = append(d.Findings, Finding{File: d.File, Code: code.MoreProblems, Why: "there is more wrong with this file"})
	default:
		why := cut(few.Printable(fmt.Sprintf(format, args...)))
		d.Findings = append(d.Findings, Finding{File: d.File, Position: at, Code: kind, Why: why})
	}
}

// Full reports whether no more findings are added, so that callers can stop checking the file.
func (d *Document) Full() bool { return len(d.Findings) > maxFindings }

// AddAt reports an error at the position of a field, or of the innermost field around it that the file has.
func (d *Document) AddAt(kind code.Code, field, format string, args ...any) {
	if !d.Full() { // Looking up the position is expensive.
		d.Add(kind, d.Position(field), format, args...)
	}
}
