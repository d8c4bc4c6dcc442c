package index

import (
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// versionsIn are those of a chart in an index.
func versionsIn(t *testing.T, index, chart string, doc int64) ([]Version, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index.zip")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := Write(file, strings.NewReader(index), Stamp{}, doc); err != nil {
		return nil, err
	}
	return LookUp(path, chart, doc)
}

func TestReadIndexFindsTheVersionsOfOneChart(t *testing.T) {
	want := []Version{{Name: "1.10", URLs: []string{"web-1.10.tgz"}, Digest: "aa"}, {Name: "1.9.0", URLs: []string{"b"}}}
	bomb := strings.Repeat("x", 5000)
	cases := map[string]struct {
		index string
		want  []Version
		says  string
	}{
		"as Helm writes it": {index: `apiVersion: v1
entries:
  other:
  - version: 3.0.0
    description: |
      web:
      - version: 6.6.6
  web:
  - digest: aa
    urls:
    - web-1.10.tgz
    # a comment
    version: 1.10
    description: |

      # no comment
      other:
  - urls: [b]
    version: 1.9.0
  webby:
  - version: 4.0.0
generated: "x"
`, want: want},
		"deeper, quoted, last": {index: "# c\nentries:\n    \"web\":\n        - {version: 1.10, urls: [web-1.10.tgz], digest: aa}\n        - version: 1.9.0\n          urls:\n          - b", want: want},
		"windows":              {index: "entries:\r\n  web:\r\n  - version: 1.10\r\n    digest: aa\r\n    urls:\r\n    - web-1.10.tgz\r\n  - version: 1.9.0\r\n    urls:\r\n    - b\r\n", want: want},
		"byte order mark":      {index: "\xef\xbb\xbfentries:\n  web:\n  - {version: 1.10, urls: [web-1.10.tgz], digest: aa}\n  - {version: 1.9.0, urls: [b]}\n", want: want},
		"flow":                 {index: "entries: {web: [{version: 1.10, urls: [web-1.10.tgz], digest: aa}, {version: 1.9.0, urls: [b]}]}", want: want},
		"quoted top":           {index: "\"entries\":\n  web:\n  - {version: 1.10, urls: [web-1.10.tgz], digest: aa}\n  - {version: 1.9.0, urls: [b]}\n", want: want},
		"anchors":              {index: "entries:\n  all: &all\n  - {version: 1.10, urls: [web-1.10.tgz], digest: aa}\n  - {version: 1.9.0, urls: [b]}\n  web: *all\n", want: want},
		"JSON":                 {index: ` {"entries":{"other":[{"a":[{}]}],"web":[{"version":"1.10","urls":["web-1.10.tgz"],"digest":"aa"},{"version":"1.9.0","urls":["b"]}]}}`, want: want},
		"JSON without":         {index: `{"entries":{"other":[]}}`},
		"without":              {index: "entries:\n  other:\n  - version: 1\n"},
		"no entries":           {index: "entries: {}\n"},
		"empty entries":        {index: "entries:\n"},
		"JSON broken":          {index: `{"entries":{"web":[{"version":`, says: "index.yaml cannot be read"},
		"JSON of a kind":       {index: `{"entries":["web"]}`, says: "index.yaml cannot be read"},
		"no index":             {index: "<html>: [", says: "index.yaml cannot be read"},
		"large":                {index: "entries: {\n" + strings.Repeat("# padding\n", 2000) + "}", says: "limit of 16 KiB"},
		"large version":        {index: "entries:\n  web:\n  - urls:\n" + strings.Repeat("    - https://charts.example/web.tgz\n", 2000), says: "limit of 16 KiB"},
		"large and not needed": {index: "entries:\n  web:\n  - version: 1.10\n    description: |\n" + strings.Repeat("      urls:\n", 9000) + "    urls: [web-1.10.tgz]\n    digest: aa\n  - {urls: [b], version: 1.9.0}\n", want: want},
		"many versions":        {index: "entries:\n  web:\n" + strings.Repeat("  - version: 1\n", maxIndexVersions+1), says: "the number of versions of this chart"},
		"many charts":          {index: "entries:\n" + strings.Repeat("  x:\n", maxIndexCharts+1), says: "the number of charts"},
		"long line":            {index: "entries:\n  web: # " + strings.Repeat("x", maxIndexLine), says: "a line of the repository's index.yaml"},
		"JSON long value":      {index: `{"entries":{"web":[{"version":"` + strings.Repeat("x", maxIndexLine) + `"}]}}`, says: "a value in the repository's index.yaml"},
		"JSON deep":            {index: `{"x":` + strings.Repeat("[", 100), says: "index.yaml cannot be read"},
		"comments between":     {index: "entries:\n  web:\n  - version: 1.10\n    urls:\n  # one\n    - web-1.10.tgz\n# two\n    digest: aa\n  # three\n  -\n    version: 1.9.0\n    urls: [b]\n", want: want},
		"twice":                {index: "entries:\n  web:\n  - {version: 1.10, urls: [web-1.10.tgz], digest: aa}\n  - {version: 1.9.0, urls: [b]}\n  web:\n  - version: 3\n", want: want},
		"list in a list":       {index: "entries:\n  web:\n    keywords:\n    - version: 1\n", says: "index.yaml cannot be read"},
		"alias of text":        {index: "entries: {web: [&v {version: " + bomb + ", urls: [b]}, {version: 1.9.0, urls: [" + strings.Repeat("*v, ", 300) + "]}]}", says: "the YAML aliases of the repository's index.yaml stand for too much"},
		"aliases of a version": {index: "entries:\n  web:\n  - version: &v " + bomb + "\n    urls: [" + strings.Repeat("*v, ", 300) + "]\n", says: "the YAML aliases of the repository's index.yaml stand for too much"},
		"alias of itself":      {index: "entries: &e {web: *e}", says: "the YAML aliases of the repository's index.yaml stand for too much"},
		"only the first URL":   {index: "entries:\n  web:\n  - {version: 1.10, urls: [web-1.10.tgz, c], digest: aa}\n  - {version: 1.9.0, urls: [b, c]}\n", want: want},
		"first URL in braces":  {index: "entries: {web: [{version: 1.10, urls: [web-1.10.tgz, c], digest: aa}, {version: 1.9.0, urls: [b, c]}]}", want: want},
		"JSON null":            {index: `{"entries":{"web":null,"x":[null]}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := versionsIn(t, tc.index, "web", 16*limit.KiB)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %v, want %q", err, tc.says)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func TestReadIndexSkipsLargeValues(t *testing.T) {
	var index strings.Builder
	index.WriteString("entries:\n")
	for i := range 2000 {
		fmt.Fprintf(&index, "  c%d:\n  - version: 1.0.%d\n    urls:\n    - c.tgz\n", i, i)
	}
	got, err := versionsIn(t, index.String(), "c1999", limit.KiB)
	if err != nil || len(got) != 1 || got[0].Name != "1.0.1999" {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzReadIndex(f *testing.F) {
	f.Add("entries:\n  web:\n  - version: 1.0.0\n    urls: [a]\n")
	f.Add("entries:\n  'web':\n    - version: \"1\"\n  x: |\n    web:\n")
	f.Add("entries: {web: [{version: 1}]}")
	f.Add(`{"entries":{"x":{},"web":[{"version":"1"}]}}`)
	f.Add("a: 1\n---\nentries:\n  web: []\n")
	f.Fuzz(func(t *testing.T, index string) {
		got, err := versionsIn(t, index, "web", limit.MiB)
		if err != nil {
			if !errors.Is(err, failure.ErrInvalid) && !errors.Is(err, failure.ErrTooLarge) {
				t.Errorf("an error of no kind: %v", err)
			}
			return
		}
		for _, entry := range got {
			// Escapes aside, what comes out stood in.
			if !strings.ContainsAny(index, `\`) && strings.IndexFunc(entry.Digest, unicode.IsSpace) < 0 && !strings.Contains(index, entry.Digest) {
				t.Errorf("made up %q", entry.Digest)
			}
		}
	})
}

func FuzzChoose(f *testing.F) {
	f.Add("1.0.0 v2.0.0-rc.1 x", "*")
	f.Add("1.0.0+a 1.0.0+b", ">=1")
	f.Fuzz(func(t *testing.T, names, requested string) {
		var versions []Version
		for name := range strings.FieldsSeq(names) {
			versions = append(versions, Version{Name: name})
		}
		got, err := Choose("web", requested, versions)
		if err == nil && !strings.Contains(names, got.Name) {
			t.Errorf("made up %q", got.Name)
		}
		if err != nil && !errors.Is(err, failure.ErrInvalid) && !errors.Is(err, failure.ErrNotFound) {
			t.Errorf("an error of no kind: %v", err)
		}
	})
}

// TestAnIndexThatIsParsedAsAWholeReplacesWhatWasWritten: the layout is found to be another one only after a part of the file was written.
func TestAnIndexThatIsParsedAsAWholeReplacesWhatWasWritten(t *testing.T) {
	var index strings.Builder
	index.WriteString("entries:\n")
	for i := range 2000 {
		fmt.Fprintf(&index, "  chart%d:\n  - version: 1.0.%d\n    appVersion: %x\n    urls: [a-%d.tgz]\n", i, i, sha512.Sum512(fmt.Append(nil, i)), i)
	}
	index.WriteString("  odd: [{version: 2.0.0, urls: [odd.tgz]}]\n")
	for chart, want := range map[string]string{"odd": "2.0.0", "chart7": "1.0.7"} {
		got, err := versionsIn(t, index.String(), chart, limit.MiB)
		if err != nil || len(got) != 1 || got[0].Name != want {
			t.Errorf("%s: got %+v and %v, want version %s", chart, got, err, want)
		}
	}
}

// TestTheLimitOfAJSONValueIsExact: a value of just that many bytes is read.
func TestTheLimitOfAJSONValueIsExact(t *testing.T) {
	for text, want := range map[string]error{"1234": nil, "12345": failure.ErrTooLarge} {
		w := &window{r: strings.NewReader(text), max: 4}
		if _, err := io.ReadAll(w); !errors.Is(err, want) || !errors.Is(w.failed, want) {
			t.Errorf("%d bytes: %v, and it failed for %v, want %v", len(text), err, w.failed, want)
		}
	}
}
