package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestAnIndexInJSONThatIsCutOffIsInvalid wherever it is cut: charts would seem to be gone from the repository.
func TestAnIndexInJSONThatIsCutOffIsInvalid(t *testing.T) {
	const whole = `{"apiVersion":"v1","entries":{"api":null,"web":[{"version":"1.0.0","urls":["a"]},{"version":"2.0.0"}]},"generated":{"a":[1,{}]}}`
	if _, err := kept(t, strings.NewReader(whole), Stamp{}); err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(whole); cut++ {
		if _, err := kept(t, strings.NewReader(whole[:cut]), Stamp{}); !errors.Is(err, failure.ErrInvalid) {
			t.Errorf("cut to %s: %v", whole[:cut], err)
		}
	}
}

func TestAnIndexInJSONWithAnotherLayoutIsInvalid(t *testing.T) {
	for name, text := range map[string]string{
		"entries are a list":     `{"entries":[]}`,
		"a chart is no list":     `{"entries":{"web":{}}}`,
		"a version is no object": `{"entries":{"web":[7]}}`,
		"nested too deep":        `{"a":` + strings.Repeat("[", maxNesting+1) + strings.Repeat("]", maxNesting+1) + `}`,
		"no object":              `{"entries":{"web":7}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kept(t, strings.NewReader(text), Stamp{})
			sources.WantError(t, err, failure.ErrInvalid, "cannot be read")
		})
	}
	deepest := `{"a":` + strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting) + `,"entries":{"web":[{"version":"1.0.0"}]}}`
	path, err := kept(t, strings.NewReader(deepest), Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	if versions, err := LookUp(path, "web", limit.KiB); err != nil || len(versions) != 1 {
		t.Errorf("got %v, %v", versions, err)
	}
}

// TestAnIndexThatCannotBeWrittenIsAnError in each layout, whether the file fails at once or at the end.
func TestAnIndexThatCannotBeWrittenIsAnError(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(bytes int) string {
		var text strings.Builder
		for text.Len() < bytes {
			fmt.Fprintf(&text, "%016x", random.Uint64())
		}
		return text.String()
	}
	var lines, objects []string
	for i := range 40 {
		digest := noise(2000)
		lines = append(lines, fmt.Sprintf("  - version: 1.0.%d\n    digest: %s\n", i, digest))
		objects = append(objects, fmt.Sprintf(`{"version":"1.0.%d","digest":%q}`, i, digest))
	}
	for name, text := range map[string]string{
		"short lines": "entries:\n  web:\n  - version: 1.0.0\n", "long lines": "entries:\n  web:\n" + strings.Join(lines, "") + "  zoo:\n  - version: 1.0.0\n",
		"short JSON": `{"entries":{"web":[{"version":"1.0.0"}]}}`, "long JSON": `{"entries":{"web":[` + strings.Join(objects, ",") + `],"zoo":[]}}`,
		"another layout": "entries: {web: [{version: 1.0.0}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			file, err := os.Create(filepath.Join(t.TempDir(), "index.zip"))
			if err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			if err := Write(file, strings.NewReader(text), Stamp{}, 16*limit.KiB); !errors.Is(err, os.ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAVersionThatIsTooLargeIsRefusedBeforeItIsWritten(t *testing.T) {
	for name, size := range map[string]int{"in a value": maxIndexLine, "in what it is written to": maxIndexLine - 8} {
		_, err := kept(t, strings.NewReader("entries: {web: [{version: "+strings.Repeat("1", size)+"}]}\n"), Stamp{})
		if err == nil || !errors.Is(err, failure.ErrTooLarge) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	on := &writer{}
	for size, fits := range map[int]bool{maxIndexLine - 100: true, maxIndexLine - 5: false, maxIndexLine: false} {
		err := on.entry(indexEntry{Version: strings.Repeat("1", size)})
		if (err == nil) != fits || !fits && !errors.Is(err, failure.ErrTooLarge) {
			t.Errorf("a version of %d bytes: %v", size, err)
		}
	}
}
