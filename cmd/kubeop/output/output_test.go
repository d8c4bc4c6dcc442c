package output

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyColoursReachATerminal(t *testing.T) {
	paint := Paint{on: true}
	for in, want := range map[string]string{
		"plain\ttext\n":             "plain\ttext\n",
		paint.Red("wrong") + "\n":   "\x1b[31mwrong\x1b[0m\n",
		"\x1b]0;title\x07x":         "\uFFFD]0;title\uFFFDx",
		"\x1b[2Jgone\x1b[1;31mred":  "\uFFFD[2Jgone\uFFFD[1;31mred",
		"back\b\b\rover":            "back\uFFFD\uFFFD\uFFFDover",
		"\u009b31m and \u202Eright": "\uFFFD31m and \uFFFDright",
		"für größere Namen: 日本":     "für größere Namen: 日本",
		"\x1b[8mhidden":             "\uFFFD[8mhidden",
		"\x1b":                      "\uFFFD",
	} {
		var out bytes.Buffer
		n, err := Safe(&out).Write([]byte(in))
		if out.String() != want || n != len(in) || err != nil {
			t.Errorf("%q: got %q (%d bytes, %v), want %q", in, out.String(), n, err, want)
		}
	}
}

// full is a writer that cannot write.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestAWriterThatFailsIsReported(t *testing.T) {
	page := NewPage(Safe(full{}), Paint{})
	page.Title("App")
	page.Field("Type", "Helm")
	if err := page.End(); err == nil || err.Error() != "disk full" {
		t.Errorf("got %v, want disk full", err)
	}
}

func TestAPageAlignsEachSection(t *testing.T) {
	var out bytes.Buffer
	page := NewPage(&out, Paint{on: true})
	page.Title("App %s", "web")
	page.Field("Type", "Image")
	page.Field("URL", "")
	page.Field("Message", "one\ntwo")
	page.Title("Steps")
	page.Line("A", page.Paint.Green("True"), "x")
	page.Line("Long", "False", "y")
	table := &Columns{}
	table.Add("N", "M")
	table.Add("1", "2")
	page.Table(table)
	if err := page.End(); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[1mApp web\x1b[0m\n  Type     Image\n  Message  one\n           two\n\n\x1b[1mSteps\x1b[0m\n" +
		"  A     \x1b[32mTrue\x1b[0m   x\n  Long  False  y\n  N   M\n  1   2\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestLaterRowsAreAlignedWithEarlierOnes(t *testing.T) {
	var out bytes.Buffer
	var c Columns
	c.Add("NAME", "READY")
	c.Add("a-long-name", "True")
	if err := c.Write(&out, ""); err != nil {
		t.Fatal(err)
	}
	c.Add("b", "False")
	if err := c.Write(&out, ""); err != nil || !c.Empty() {
		t.Fatal(err)
	}
	if want := "NAME          READY\na-long-name   True\nb             False\n"; out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

func TestFormatsForProgramsOmitManagedFields(t *testing.T) {
	object := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}},
	}
	for format, want := range map[Format]string{
		JSON: "{\n    \"kind\": \"ConfigMap\",\n    \"apiVersion\": \"v1\",\n    \"metadata\": {\n        \"name\": \"a\"\n    }\n}\n",
		YAML: "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n",
	} {
		var out bytes.Buffer
		if err := format.Write(&out, object); err != nil || out.String() != want || !format.ForPrograms() {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
	}
	for format, want := range map[Format]string{JSON: "[\n    {\n        \"a\": 1\n    }\n]\n", YAML: "- a: 1\n"} {
		var out bytes.Buffer
		if err := format.Write(&out, []map[string]int{{"a": 1}}); err != nil || out.String() != want {
			t.Errorf("%s: %v\n%q", format, err, out.String())
		}
	}
	var format Format
	c := &cobra.Command{}
	format.AddFlag(c, Table, JSON)
	if err := c.Flags().Set("output", "yaml"); err == nil || format != Table || Table.ForPrograms() {
		t.Errorf("a format that the command does not have is %q, %v", format, err)
	}
	if err := c.Flags().Set("output", "json"); err != nil || format != JSON {
		t.Errorf("got %q, %v", format, err)
	}
	complete, known := c.GetFlagCompletionFunc("output")
	if !known {
		t.Fatal("the shell completes no format")
	}
	names, directive := complete(c, nil, "")
	if diff := cmp.Diff([]string{"table", "json"}, names); diff != "" || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("the shell completes formats with directive %d (-want +got):\n%s", directive, diff)
	}
}

func TestAgeIsShownInItsLargestUnit(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for want, then := range map[string]time.Time{"": {}, "5m": now.Add(-5 * time.Minute), "24h": now.Add(-24 * time.Hour), "3d": now.Add(-72 * time.Hour)} {
		if got := Age(now, then); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWithoutColoursTextStaysAsItIs(t *testing.T) {
	off, on := Paint{}, Paint{on: true}
	for name, c := range map[string]struct{ got, want string }{
		"red":                  {off.Red("x"), "x"},
		"a stream":             {off.Stream(1, "x"), "x"},
		"the end of a line":    {off.Reset(), ""},
		"coloured":             {on.Red("x"), "\x1b[31mx\x1b[0m"},
		"nothing to colour":    {on.Red(""), ""},
		"coloured to its end":  {on.Reset(), "\x1b[0m"},
		"a stream has its own": {on.Stream(8, "x"), on.Stream(0, "x")},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", name, c.got, c.want)
		}
	}
	if on.Stream(0, "x") == on.Stream(1, "x") {
		t.Error("two streams have one colour")
	}
}

// TestTheLastColumnIsNotPadded, and what is wrong with a value that has no JSON is said.
func TestTheLastColumnIsNotPadded(t *testing.T) {
	var out bytes.Buffer
	columns := &Columns{}
	columns.Add("a", "long cell")
	columns.Add("bbb", "x")
	columns.Add("c")
	if err := columns.Write(&out, "> "); err != nil || out.String() != "> a     long cell\n> bbb   x\n> c\n" {
		t.Errorf("%v: got %q", err, out.String())
	}
	for _, format := range []Format{JSON, YAML} {
		if err := format.Write(&out, func() {}); err == nil {
			t.Errorf("%s: a value that cannot be encoded is no error", format)
		}
	}
}

func TestTablesOfAPageComeAfterItsLines(t *testing.T) {
	var out bytes.Buffer
	page := NewPage(&out, Paint{})
	page.Title("One")
	page.Line("first")
	table := &Columns{}
	table.Add("second")
	page.Table(table)
	page.Line("third")
	if err := page.End(); err != nil || out.String() != "One\n  first\n  second\n  third\n" {
		t.Errorf("%v: got %q", err, out.String())
	}
}
