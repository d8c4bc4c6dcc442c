package migrate

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/cmd/kubeop/output"
)

// Entry is one thing that a person has to know or to do.
type Entry struct {
	// Object is the kind, namespace and name.
	Object string `json:"object"`
	// Field of it, such as "spec.rollback.timeout". Empty: the whole object.
	Field string `json:"field,omitempty"`
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	// Do says what follows, and what to do.
	Do string `json:"do"`
}

// Report is what an import did.
type Report struct {
	// Written are the files, and Kept those that existed.
	Written []string `json:"written"`
	Kept    []string `json:"kept,omitempty"`
	// LeftOut has no counterpart, or could not be read.
	LeftOut []Entry `json:"leftOut"`
	// ToDo has to be done before the apps can be delivered.
	ToDo []Entry `json:"toDo"`
	// Next are the steps that replace the other tool.
	Next []string `json:"next"`
}

// leaveOut notes what is not imported.
func (r *Report) leaveOut(o *object, field, do string) {
	r.LeftOut = append(r.LeftOut, entry(o, field, do))
}

// ask notes what a person has to do.
func (r *Report) ask(o *object, field, do string) { r.ToDo = append(r.ToDo, entry(o, field, do)) }

func entry(o *object, field, do string) Entry {
	e := Entry{Object: o.name(), Field: printable(field), Do: do}
	var path []string
	if field != "" {
		path = strings.Split(field, ".")
	}
	e.File, e.Line = o.place(path...)
	return e
}

// String is a line of the report.
func (e Entry) String() string {
	text := e.Object
	if e.Field != "" {
		text += " " + e.Field
	}
	return text + ": " + e.Do
}

// place is where the line is about; "" if it is about an object of a cluster.
func (e Entry) place() string {
	if e.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", printable(e.File), e.Line)
}

// sort orders the entries by file and line.
func (r *Report) sort() {
	for _, entries := range []*[]Entry{&r.LeftOut, &r.ToDo} {
		slices.SortStableFunc(*entries, func(a, b Entry) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field))
		})
		*entries = slices.Compact(*entries)
		if *entries == nil {
			*entries = []Entry{}
		}
	}
}

// text writes the report for people.
func (r *Report) text(w io.Writer, paint output.Paint) error {
	var b strings.Builder
	for _, file := range r.Written {
		fmt.Fprintf(&b, "Wrote %s.\n", file)
	}
	for _, file := range r.Kept {
		fmt.Fprintf(&b, "Left as it is: %s\n", file)
	}
	for _, part := range []struct {
		title   string
		entries []Entry
	}{{"Left out:", r.LeftOut}, {"To do before a push:", r.ToDo}} {
		if len(part.entries) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", paint.Bold(part.title))
		for _, e := range part.entries {
			fmt.Fprintf(&b, "%s%s\n", paint.Bold(e.place()), e)
		}
	}
	if len(r.Written) > 0 {
		fmt.Fprintf(&b, "\n%s\n", paint.Bold("Next:"))
		for i, step := range r.Next {
			fmt.Fprintf(&b, "%d. %s\n", i+1, step)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
