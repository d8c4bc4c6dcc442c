package release

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/sandbox"
)

// hostile are charts that would end a process that evaluates them, or never end.
var hostile = map[string]struct {
	files map[string]string
	// says is what people are told: the limit, its value, and where.
	says []string
	// counted: it was read within the limits, and has too many parts.
	counted bool
}{
	"one large string":        {inTemplate(configOf(`{{ repeat 3000000000 "a" | len }}`)), []string{"template web/templates/a.yaml", "memory, 192 MiB"}, false},
	"one large list":          {inTemplate(configOf(`{{ until 400000000 | len }}`)), []string{"template web/templates/a.yaml", "memory, 192 MiB"}, false},
	"tpl on itself":           {with(inTemplate(configOf(`{{ tpl .Values.t . }}`)), "values.yaml", "t: \"{{ tpl .Values.t . }}\"\n"), []string{"template web/templates/a.yaml", "limit of"}, false},
	"an endless range":        {inTemplate(configOf(`{{ range until 30000 }}{{ range until 30000 }}{{ end }}{{ end }}`)), []string{"template web/templates/a.yaml", "processor time, 1s"}, false},
	"in a subchart":           {with(subchart(), "charts/db/templates/b.yaml", `{{ repeat 3000000000 "a" | len }}`), []string{"template web/charts/db/templates/b.yaml", "memory, 192 MiB"}, false},
	"values of many lists":    {map[string]string{"values.yaml": "a: [" + strings.Repeat("[],", (5<<20-100)/3) + "[]]\n"}, []string{"values.yaml", "memory, 192 MiB"}, false},
	"manifest of many lists":  {inTemplate("a: [{{ repeat 3000000 \"[],\" }}[]]\n"), []string{"what template web/templates/a.yaml renders to"}, false},
	"kinds of many lists":     {map[string]string{"crds/a.yaml": "a: [" + strings.Repeat("[],", 1<<20) + "[]]\n"}, []string{"crds/a.yaml", "more than 500000"}, true},
	"a schema of many lists":  {map[string]string{"values.schema.json": "{\"enum\": [" + strings.Repeat("[],", 1<<20) + "[]]}"}, []string{"values.schema.json", "more than 500000"}, true},
	"broken text, then lists": {inTemplate("a: b: c\n---\na: [{{ repeat 1000000 \"[],\" }}[]]\n"), []string{"what template web/templates/a.yaml renders to"}, true},
	"a manifest of 40 MB":     {inTemplate("a: |\n{{ repeat 40000000 \"a\" | indent 2 }}\n"), []string{"template web/templates/a.yaml", "limit of"}, false},
}

func subchart() map[string]string {
	return map[string]string{"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n"}
}

func with(files map[string]string, name, text string) map[string]string {
	files[name] = text
	return files
}

// TestHostileCharts: what a chart does to the process that evaluates it is told with limit and place, it is not done again, also not
// by the next operator, and neither this process nor another app notices.
func TestHostileCharts(t *testing.T) {
	p, err := sandbox.New(sandbox.Options{Processes: 2, Limits: sandbox.Limits{Memory: 192 << 20, CPU: time.Second, Wall: 20 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	before := residentBytes(t)
	for name, test := range hostile {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			var calls atomic.Int64
			tm.evaluate = func(ctx context.Context, tenant string, in []byte, ask func(context.Context, []byte) ([]byte, error)) ([]byte, error) {
				calls.Add(1)
				return evaluateIn(p)(ctx, tenant, in, ask)
			}
			tm.restart("me")
			r := tm.request(folder(test.files))
			out := tm.settle(r)
			tm.refused(out, test.says)
			if n := calls.Load(); n != 1 {
				t.Errorf("evaluated %d times, want once", n)
			}
			tm.restart("the next operator")
			tm.refused(tm.settle(r), test.says)
			if n := calls.Load(); n != 1 && !test.counted {
				t.Errorf("after a restart evaluated %d times, want once", n)
			}
			tm.deploy(tm.request(folder(inTemplate(configOf("good")))))
		})
	}
	t.Cleanup(func() {
		if now := residentBytes(t); now > before+256<<20 {
			t.Errorf("this process grew from %d to %d MiB", before>>20, now>>20)
		}
	})
}

// refused expects a failure of the input that says all of this.
func (t *team) refused(out Outcome, says []string) {
	t.Helper()
	if !errors.Is(out.Failed, ErrRender) || out.World {
		t.Fatalf("got %v, the world's fault: %t; want an ErrRender", out.Failed, out.World)
	}
	for _, text := range says {
		if !strings.Contains(out.Failed.Error(), text) {
			t.Errorf("%q does not say %q", out.Failed, text)
		}
	}
}

func residentBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestANewerInputEndsTheOld: what never ends is ended when something else is wanted.
func TestANewerInputEndsTheOld(t *testing.T) {
	tm := newTeam(t)
	begun := make(chan struct{})
	var once sync.Once
	tm.evaluate = func(ctx context.Context, tenant string, in []byte, ask func(context.Context, []byte) ([]byte, error)) ([]byte, error) {
		once.Do(func() { close(begun) })
		return evaluateIn(boxes)(ctx, tenant, in, ask)
	}
	tm.restart("me")
	if _, err := tm.Reconcile(t.Context(), tm.request(folder(inTemplate(configOf(`{{ range until 30000 }}{{ range until 30000 }}{{ end }}{{ end }}`))))); err != nil {
		t.Fatal(err)
	}
	<-begun
	at := time.Now()
	tm.deploy(tm.request(folder(inTemplate(configOf("good")))))
	if took := time.Since(at); took > 5*time.Second {
		t.Errorf("it took %s; the limit of processor time is 10s", took)
	}
}
