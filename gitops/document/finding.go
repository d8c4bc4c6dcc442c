// Package document reads YAML documents that know their lines, within bounds of what they may stand for.
package document

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// maxFindings bounds what is reported about one file; more does not help its author.
const maxFindings = 20

// Document is one parsed YAML document.
type Document struct {
	File string
	// Value is the document as JSON has it. With any finding it may be incomplete.
	Value    map[string]any
	Findings []Finding
	// Size of the file in bytes.
	Size int

	root *yaml.Node
}

// Finding is something wrong in a file, before it is known which object that holds back.
type Finding struct {
	File string
	// Line from 1; 0 is the file itself.
	Line int
	// Why says what is wrong and what to do.
	Why string
	// Misplaced: the file is named like one that declares an object, and lies where none is read from.
	Misplaced bool
	// Err is the store's, when the file could not be read.
	Err error
}

// Add reports something wrong in a line.
func (d *Document) Add(line int, format string, args ...any) {
	switch {
	case d.Full():
	case len(d.Findings) == maxFindings:
		d.Findings = append(d.Findings, Finding{File: d.File, Why: "there is more wrong with this file"})
	default:
		why := cut(Printable(fmt.Sprintf(format, args...)))
		d.Findings = append(d.Findings, Finding{File: d.File, Line: line, Why: why})
	}
}

// Full reports that nothing more will be reported about the file, so that nothing more needs to be looked for.
func (d *Document) Full() bool { return len(d.Findings) > maxFindings }

// AddAt reports something wrong at the line of a field, or of the nearest field around it that is written.
func (d *Document) AddAt(field, format string, args ...any) {
	if !d.Full() { // finding the line costs more than the finding
		d.Add(d.Line(field), format, args...)
	}
}
