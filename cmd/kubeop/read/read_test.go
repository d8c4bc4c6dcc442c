package read

import (
	"bytes"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

func TestTheFirstFailureAfterASuccessIsToBlame(t *testing.T) {
	ok, bad, now := v1alpha1.DeliverySucceeded, v1alpha1.DeliveryFailed, v1alpha1.DeliveryProgressing
	for name, tc := range map[string]struct {
		results         []string // the newest first
		failure, before int      // -1 for none
	}{
		"nothing":              {nil, -1, -1},
		"one that failed":      {[]string{bad}, 0, -1},
		"one that succeeded":   {[]string{ok}, -1, 0},
		"a failure":            {[]string{bad, ok, ok}, 0, 1},
		"several failures":     {[]string{bad, bad, bad, ok, bad}, 2, 3},
		"one in progress":      {[]string{now, bad, ok}, 1, 2},
		"progress, no failure": {[]string{now, ok, bad}, -1, 1},
		"only failures":        {[]string{bad, bad}, 1, -1},
		"mended":               {[]string{ok, bad, ok}, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			records := make([]v1alpha1.DeliveryRecord, len(tc.results))
			for i, result := range tc.results {
				records[i].Result = result
			}
			index := func(of *v1alpha1.DeliveryRecord) int {
				for i := range records {
					if &records[i] == of {
						return i
					}
				}
				return -1
			}
			failure, before := firstFailure(records)
			if index(failure) != tc.failure || index(before) != tc.before {
				t.Errorf("got %d after %d, want %d after %d", index(failure), index(before), tc.failure, tc.before)
			}
		})
	}
}

func TestEventsAreDatedByWhicheverFieldIsLast(t *testing.T) {
	at := func(minutes int) time.Time { return time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC) }
	for name, tc := range map[string]struct {
		event corev1.Event
		want  int
	}{
		"created":  {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1))}}, 1},
		"repeated": {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1))}, LastTimestamp: metav1.NewTime(at(5))}, 5},
		"new API":  {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(1))}, EventTime: metav1.NewMicroTime(at(2))}, 2},
		"series":   {corev1.Event{EventTime: metav1.NewMicroTime(at(2)), Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(9))}}, 9},
	} {
		if got := lastSeen(&tc.event); !got.Equal(at(tc.want)) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// row is a row of the API server's table.
func row(namespace, name string, cells ...any) metav1.TableRow {
	object := `{"metadata":{"namespace":"` + namespace + `","name":"` + name + `"}}`
	return metav1.TableRow{Cells: append([]any{name}, cells...), Object: runtime.RawExtension{Raw: []byte(object)}}
}

func TestATableHasPathsForSeveralNamespacesAndMoreColumnsIfWide(t *testing.T) {
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Ready"}, {Name: "Hidden", Priority: 1}, {Name: "Status"}, {Name: "Age"}},
		Rows:              []metav1.TableRow{row("kubeop-acme-shop", "web", "True", "x", "all\nwell", "5m"), row("kubeop-acme-lab", "api", "False", nil, nil, "1m")},
	}
	for name, tc := range map[string]struct {
		wide, paths bool
		want        string
	}{
		"one namespace": {want: "NAME   READY   STATUS     AGE\napi    False              1m\nweb    True    all well   5m\n"},
		"several":       {paths: true, want: "NAME            READY   STATUS     AGE\nacme/lab/api    False              1m\nacme/shop/web   True    all well   5m\n"},
		"wide":          {wide: true, want: "NAME   READY   HIDDEN   STATUS     AGE\napi    False                       1m\nweb    True    x        all well   5m\n"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := newRows(target.App, tc.wide, tc.paths, output.Paint{})
			rows.add(table)
			var out bytes.Buffer
			if err := rows.write(&out); err != nil || out.String() != tc.want {
				t.Errorf("%v: got\n%s", err, out.String())
			}
		})
	}
}

func TestARowIsPrintedAgainOnlyIfMoreThanItsAgeChanged(t *testing.T) {
	rows := newRows(target.App, false, false, output.Paint{})
	headers := []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Ready"}, {Name: "Age"}}
	print := func(cells ...any) string {
		rows.add(&metav1.Table{ColumnDefinitions: headers, Rows: []metav1.TableRow{row("kubeop-acme-shop", "web", cells...)}})
		var out bytes.Buffer
		if err := rows.write(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, step := range []struct{ ready, age, want string }{
		{"True", "1m", "NAME   READY   AGE\nweb    True    1m\n"}, {"True", "2m", ""}, {"False", "2m", "web    False   2m\n"}, {"True", "2m", "web    True    2m\n"},
	} {
		if got := print(step.ready, step.age); got != step.want {
			t.Errorf("%+v: got %q", step, got)
		}
	}
}
