package expr

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nested puts an expression of a variable into so many loops over a list.
func nested(loops int, list, inner string) string {
	for i := loops - 1; i >= 0; i-- {
		inner = fmt.Sprintf("%s.all(v%d, %s)", list, i, inner)
	}
	return inner
}

// filled repeats a part as often as fits.
func filled(first, part, last string) string {
	return first + strings.Repeat(part, (MaxLength-len(first)-len(last))/len(part)) + last
}

// worst are expressions at the limits of length, nesting and cost.
var worst = map[string]string{
	"many operators":      filled("true", "||!true", ""),
	"many alternatives":   filled("dep.a", "||dep.a", ""),
	"many choices":        filled("dep.a", "?true:dep.a", "?true:true"),
	"a long list":         filled("[1", ",1", "] == []"),
	"lists in a list":     "[[]" + strings.Repeat(",[]", maxMade-3) + "] == []",
	"maps in a list":      "[{}" + strings.Repeat(",{}", maxMade-3) + "] == []",
	"nested lists":        strings.Repeat("[", 40) + strings.Repeat("]", 40) + " == []",
	"nested maps":         strings.Repeat("{1:", 20) + "1" + strings.Repeat("}", 20) + " == {}",
	"many loops":          "true" + strings.Repeat("&&[].all(a,true)", maxLoops),
	"many nested loops":   nested(20, "[]", "true"),
	"many small loops":    "true" + strings.Repeat("&&l.exists_one(a,a==1)", maxLoops),
	"transformed":         "true" + strings.Repeat("&&l.map(a,a>1,a)==l", maxLoops),
	"many selections":     filled("dep", ".a", ""),
	"many optionals":      filled("dep", ".?a", ".hasValue()"),
	"many texts":          filled("''", "+'a'", " == ''"),
	"loops in loops":      nested(4, "l", "v0 + v1 + v2 + v3 >= 0"),
	"loops, no work":      nested(3, "l", "true"),
	"a list that grows":   "l.map(a, l.map(b, l.map(c, l))).size() > 0",
	"lists appended":      nested(2, "l", "l + l != []"),
	"texts appended":      nested(2, "l", "dep.text + dep.text != ''"),
	"texts compared":      nested(2, "l", "dep.text == dep.text"),
	"objects compared":    nested(2, "l", "dep == dep"),
	"texts searched":      nested(2, "l", "!dep.text.contains('xxxxxxxxxxxxxxxxxxxxxxxxxxy')"),
	"lists searched":      nested(2, "l", "!(dep in l)"),
	"texts converted":     nested(2, "l", "bytes(dep.text) != b''"),
	"maps made":           nested(2, "l", "{'a': l, 'b': l} != {}"),
	"times":               nested(2, "l", "timestamp('2024-01-01T00:00:00Z').getHours('Europe/Berlin') >= 0"),
	"durations":           nested(2, "l", "duration('1h1m1s1ms1us1ns') > duration('1s')"),
	"numbers as text":     nested(2, "l", "string(double('1e300')) != ''"),
	"sizes":               nested(2, "l", "size(dep.text) > 0"),
	"optional selections": nested(2, "l", "dep.?a.?b.?c.?d.orValue(1) == 1"),
}

// measured are the processor time and the bytes that f takes.
func measured(t *testing.T, f func()) (took time.Duration, allocated uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := processorTime(t)
	f()
	took = processorTime(t) - began
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestTheCostliestExpressionsStayWithinTheLimits measures what they take in the operator. The limit of time leaves room for a slow machine.
func TestTheCostliestExpressionsStayWithinTheLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes several times as long and as much memory")
	}
	const maxBytes, maxCompile = 10 << 20, time.Second
	numbers := make([]any, 1000)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	large := make([]any, 300)
	for i := range large {
		large[i] = map[string]any{"type": strings.Repeat("x", 3000), "n": []any{int64(1), "a"}}
	}
	dep := map[string]any{"a": false, "list": large, "text": strings.Repeat("x", 1<<20)}
	if _, err := Compile("true", "dep", "l"); err != nil {
		t.Fatal(err)
	}
	for name, text := range worst {
		t.Run(name, func(t *testing.T) {
			var e *Expr
			var err error
			took, bytes := measured(t, func() { e, err = Compile(text, "dep", "l") })
			t.Logf("compiled %d bytes: %s, %d KiB: %v", len(text), took, bytes>>10, err)
			if bytes > maxBytes || took > maxCompile {
				t.Errorf("to compile it took %s and %d KiB", took, bytes>>10)
			}
			if err != nil {
				return
			}
			took, bytes = measured(t, func() { _, err = e.True(t.Context(), map[string]any{"dep": dep, "l": numbers}) })
			t.Logf("evaluated: %s, %d KiB: %v", took, bytes>>10, err)
			if bytes > maxBytes || took > maxTime || err != nil && !strings.Contains(err.Error(), "than the limit of") {
				t.Errorf("it took %s and %d KiB: %v", took, bytes>>10, err)
			}
		})
	}
}
