//go:build e2e

package availability

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// report gathers what became of the attacks.
type report struct {
	limit         string
	before, after *window
	rows          []*outcome
}

func (r *report) add(all []*outcome) { r.rows = append(r.rows, all...) }

// judge tells the undisturbed figures, before and after, and writes the page when ATTACKS=write asks for it.
func (r *report) judge(t *testing.T) {
	t.Helper()
	for _, w := range []*window{r.before, r.after} {
		t.Logf("%s: %s; operator %d MiB, boxes %d MiB", w.name, w.latency, w.spent.own>>20, w.spent.boxes>>20)
	}
	if grown := float64(r.after.spent.usual) / float64(r.before.spent.usual); grown > mostGrowth {
		t.Errorf("after all attacks the operator has %.2f times the memory of before", grown)
	}
	t.Logf("all attacks:\n%s", r.markdown())
	if os.Getenv("ATTACKS") != "write" {
		return
	}
	if err := r.write(); err != nil {
		t.Error(err)
	}
}

// page is where the table is written down.
const page = "../../../docs/attacks.md"

func (r *report) write() error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, _, _ := strings.Cut(string(text), "| # |")
	return os.WriteFile(page, []byte(head+r.markdown()), 0o644)
}

func (r *report) markdown() string {
	var out strings.Builder
	head := []string{"#", "finding", "what is attacked", "with what", "another's p99, one attacker", "three", "operator, MiB", "restarts",
		"CPU of processes, s", "reported after, s", "removed after, s", ""}
	fmt.Fprintf(&out, "| %s |\n%s|\n", strings.Join(head, " | "), strings.Repeat("|---", len(head)))
	n := 0
	for _, x := range boxed {
		for _, a := range x.attacks {
			one, three := r.of(a.key, 1), r.of(a.key, len(attackers))
			if one == nil && three == nil {
				continue
			}
			n++
			fmt.Fprintf(&out, "| %d | %s | %s | %s | %s |\n", n, a.id, x.name, a.name, strings.Join(cells(one, three), " | "))
		}
	}
	fmt.Fprintf(&out, "\nUndisturbed: %s before, %s after; the operator itself had %d MiB, and %d MiB after. %s.\n",
		r.before.latency, r.after.latency, r.before.spent.own>>20, r.after.spent.own>>20, r.limit)
	return out.String()
}

// of is the outcome of an attack by so many tenants, the worst where there are several.
func (r *report) of(key string, by int) (worst *outcome) {
	for _, o := range r.rows {
		if o.key == key && (o.by == 1) == (by == 1) && (worst == nil || o.w.latency.p99 > worst.w.latency.p99) {
			worst = o
		}
	}
	return worst
}

// cells are the figures of the runs of an attack, of most the larger ones.
func cells(runs ...*outcome) []string {
	var all []string
	var own int64
	var restarts int
	var cpu, told, gone float64
	held := true
	for _, o := range runs {
		if o == nil {
			all = append(all, "")
			continue
		}
		all = append(all, fmt.Sprintf("%.2f s", o.w.latency.p99))
		own, restarts, cpu = max(own, o.w.spent.own), max(restarts, o.w.spent.restarts), max(cpu, o.w.spent.cpu)
		told, gone = max(told, o.told.Seconds()), max(gone, o.w.gone.Seconds())
		held = held && o.err == nil && len(o.w.broken) == 0
	}
	what := "held"
	if !held {
		what = "**not held**"
	}
	return append(all, fmt.Sprint(own>>20), fmt.Sprint(restarts), fmt.Sprintf("%.1f", cpu), fmt.Sprintf("%.1f", told), fmt.Sprintf("%.1f", gone), what)
}
