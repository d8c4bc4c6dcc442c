package quota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestTakenCountsEachKindAsLargeAsItMayBe(t *testing.T) {
	b := Bound{Limit: 1 << 20, MaxObject: 32 << 10}
	for kind, want := range map[string]int64{
		"count/configmaps": 32 << 10, "count/secrets": 32 << 10, "count/pods": 16 << 10, "count/deployments.apps": 16 << 10,
		"count/controllerrevisions.apps": 16 << 10, "count/jobs.batch": 16 << 10, "count/services": 8 << 10, "count/queues.example.com": 8 << 10,
		"pods": 0, "requests.cpu": 0, "services.nodeports": 0,
	} {
		if got := b.Taken(list(map[string]string{kind: "3"})); got != 3*want {
			t.Errorf("3 of %s count %d, want %d", kind, got, 3*want)
		}
	}
}

// The bound of the cases is 3,200 Ki: 100 ConfigMaps, or 400 Services.
func TestShareLetsBeMadeWhatTheRestHolds(t *testing.T) {
	b := Bound{Limit: 3200 << 10, MaxObject: 32 << 10}
	hard := map[string]string{"count/configmaps": "50", "count/services": "100", "requests.cpu": "4"}
	cases := map[string]struct {
		used, before map[string]string
		taken        int64 // in ConfigMaps
		want         map[string]string
		less         bool
	}{
		"nothing is taken": {taken: 0, want: hard},
		"less than half, and nearly as much was before": {taken: 49, before: map[string]string{"count/configmaps": "48"}, want: hard},
		"less than half, whatever was before":           {taken: 49, before: map[string]string{"count/configmaps": "3"}, want: hard},
		"there is enough left":                          {taken: 50, want: hard},
		"not for all of a kind":                         {taken: 70, used: map[string]string{"count/configmaps": "10"}, want: map[string]string{"count/configmaps": "40", "count/services": "100", "requests.cpu": "4"}, less: true},
		"for few of each": {
			taken: 98, used: map[string]string{"count/configmaps": "10", "count/services": "3"},
			want: map[string]string{"count/configmaps": "12", "count/services": "11", "requests.cpu": "4"}, less: true,
		},
		"for none":           {taken: 100, used: map[string]string{"count/configmaps": "10"}, want: map[string]string{"count/configmaps": "10", "count/services": "0", "requests.cpu": "4"}, less: true},
		"too much is there":  {taken: 140, used: map[string]string{"count/configmaps": "10"}, want: map[string]string{"count/configmaps": "10", "count/services": "0"}, less: true},
		"more than hard was": {taken: 70, used: map[string]string{"count/configmaps": "90"}, want: map[string]string{"count/configmaps": "50"}},
		"near enough": {
			taken: 84, used: map[string]string{"count/configmaps": "10"}, before: map[string]string{"count/configmaps": "28"},
			want: map[string]string{"count/configmaps": "28", "count/services": "64"}, less: true,
		},
		"not near enough": {
			taken: 84, used: map[string]string{"count/configmaps": "10"}, before: map[string]string{"count/configmaps": "29"},
			want: map[string]string{"count/configmaps": "26"}, less: true,
		},
		"at the bound nothing but exactly": {
			taken: 100, used: map[string]string{"count/configmaps": "10"}, before: map[string]string{"count/configmaps": "11"}, want: map[string]string{"count/configmaps": "10"}, less: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			given := list(hard)
			got, less := b.Share(given, list(c.used), list(c.before), c.taken*32<<10)
			holds(t, got, c.want)
			if less != c.less {
				t.Errorf("less: %t, want %t", less, c.less)
			}
			holds(t, given, hard)
		})
	}
}

// Half of the bound is near it.
func TestFromHalfOfTheBoundQuotasAreShared(t *testing.T) {
	b := Bound{Limit: 1000}
	for taken, want := range map[int64]bool{0: false, 499: false, 500: true, 501: true} {
		if got := b.Near(taken); got != want {
			t.Errorf("%d of 1000: near %t, want %t", taken, got, want)
		}
	}
}

// Whoever makes one object after the other gets to the bound, and each project's quota is written seldom.
func TestFillingOneProjectWritesTheOthersSeldom(t *testing.T) {
	b := Bound{Limit: 3200 << 10, MaxObject: 32 << 10}
	hard := list(map[string]string{"count/configmaps": "90"})
	other, mine, writes, made := hard, hard, 0, int64(0)
	for made < 200 {
		now := mine["count/configmaps"]
		if made >= now.Value() {
			break
		}
		made++
		used := countsOf(made)
		mine, _ = b.Share(hard, used, mine, b.Taken(used))
		next, _ := b.Share(hard, nil, other, b.Taken(used))
		was, is := other["count/configmaps"], next["count/configmaps"]
		if is.Cmp(was) != 0 {
			writes++
		}
		other = next
	}
	if left := other["count/configmaps"]; made != 90 || left.Value() < 9 || left.Value() > 11 {
		t.Errorf("made %d, and another may have %s", made, left.String())
	}
	if writes == 0 || writes > 20 {
		t.Errorf("the quota of another project was written %d times", writes)
	}
}

func countsOf(n int64) corev1.ResourceList {
	return corev1.ResourceList{"count/configmaps": *resource.NewQuantity(n, resource.DecimalSI)}
}
