package sampler

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/manager/tally"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
)

// simulation is a cluster in which pods, claims and load balancers come and go, second by second, and what is really used in it.
type simulation struct {
	*testing.T
	random  *rand.Rand
	at      fence.Instant
	objects map[string]client.Object
	// uses has what pods really use: billionths of cores, and bytes.
	uses map[string][2]int64
	// truth has what was used in each minute, in billionths for CPU.
	truth map[time.Time]map[tally.Owner]map[string]int64
	made  int
	lives time.Duration
}

// shortLife is how long things live that are often gone before the metrics API has them.
const shortLife = 45 * time.Second

var began = time.Date(2026, 11, 28, 12, 0, 30, 0, time.UTC)

func newSimulation(t *testing.T, seed uint64, lives time.Duration) *simulation {
	s := &simulation{T: t, random: rand.New(rand.NewPCG(seed, seed)), at: fence.Instant{Wall: began, Running: time.Hour}, lives: lives}
	s.objects, s.uses, s.truth = map[string]client.Object{}, map[string][2]int64{}, map[time.Time]map[tally.Owner]map[string]int64{}
	for _, namespace := range []string{"kubeop-acme-shop", "kubeop-acme-blog", "kubeop-beta-shop"} {
		for i, app := range []string{"web", "db", "jobs"} {
			a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app}}
			a.Status.Inventory.Entries = make([]v1alpha1.InventoryEntry, 3+i)
			s.objects["app/"+namespace+"/"+app] = a
		}
	}
	for range 60 {
		s.create()
	}
	return s
}

// true time is by the monotonic clock.
func (s *simulation) now() time.Time { return began.Add(s.at.Running - time.Hour) }

func (s *simulation) create() {
	s.made++
	namespace := []string{"kubeop-acme-shop", "kubeop-acme-blog", "kubeop-beta-shop", "kube-system"}[s.random.IntN(4)]
	meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("o", s.made), Labels: map[string]string{v1alpha1.AppLabel: []string{"web", "db", "jobs", "forged"}[s.random.IntN(4)]}}
	key := fmt.Sprintf("%s/%s", namespace, meta.Name)
	switch s.random.IntN(8) {
	case 0:
		class := []string{"fast", "slow"}[s.random.IntN(2)]
		s.objects[key] = &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}, Status: corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(int64(1+s.random.IntN(100))<<30, resource.BinarySI)},
		}}
	case 1:
		s.objects[key] = &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}, Status: corev1.ServiceStatus{
			LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}},
		}}
	default:
		requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(10+s.random.IntN(2000)), resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(int64(1+s.random.IntN(4096))<<20, resource.BinarySI)}
		s.objects[key] = &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		s.uses[key] = [2]int64{1_000_000 * int64(10+s.random.IntN(1000)), int64(1+s.random.IntN(1000)) << 20}
	}
}

// second has a second pass: what is there is used for it, and then things change.
func (s *simulation) second() (changed []string) {
	minute := s.now().Truncate(time.Minute)
	if s.truth[minute] == nil {
		s.truth[minute] = map[tally.Owner]map[string]int64{}
	}
	for key, object := range s.objects {
		s.use(s.truth[minute], key, object)
	}
	s.at.Running += time.Second
	s.at.Wall = s.at.Wall.Add(time.Second)
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if _, is := s.objects[key].(*v1alpha1.App); is {
			continue
		}
		if use, is := s.uses[key]; is && s.random.IntN(30) == 0 { // What is used changes by up to a tenth.
			s.uses[key] = [2]int64{use[0] * int64(90+s.random.IntN(21)) / 100, use[1] * int64(90+s.random.IntN(21)) / 100}
		}
		if s.random.Float64() < 1/s.lives.Seconds() {
			delete(s.objects, key)
			delete(s.uses, key)
			s.create()
			changed = append(changed, key)
		}
	}
	return append(changed, fmt.Sprintf("%d", s.made))
}

// use adds what an object uses in a second, by rules that are written here once more.
func (s *simulation) use(to map[tally.Owner]map[string]int64, key string, object client.Object) {
	tenants := map[string][2]string{"kubeop-acme-shop": {"acme", "shop"}, "kubeop-acme-blog": {"acme", "blog"}, "kubeop-beta-shop": {"beta", "shop"}}
	of, is := tenants[object.GetNamespace()]
	if !is {
		return
	}
	owner := tally.Owner{Tenant: of[0], Project: of[1], App: object.GetLabels()[v1alpha1.AppLabel]}
	if owner.App == "forged" {
		owner.App = ""
	}
	add := func(name string, amount int64) {
		if to[owner] == nil {
			to[owner] = map[string]int64{}
		}
		to[owner][name] += amount
	}
	switch o := object.(type) {
	case *corev1.Pod:
		requests := o.Spec.Containers[0].Resources.Requests
		add("cpu.requested", requests.Cpu().MilliValue()*1_000_000)
		add("memory.requested", requests.Memory().Value())
		add("pods", 1)
		add("cpu.used", s.uses[key][0])
		add("memory.used", s.uses[key][1])
	case *corev1.PersistentVolumeClaim:
		add("storage/"+*o.Spec.StorageClassName, o.Status.Capacity.Storage().Value())
	case *corev1.Service:
		add("loadbalancers", 1)
	case *v1alpha1.App:
		owner.App = o.Name
		add("objects", int64(len(o.Status.Inventory.Entries)))
	}
}

// observer is a Sampler with what its watches delivered.
type observer struct {
	*Sampler
	of    *simulation
	known map[string]client.Object
	// deaf is until when nothing arrives, and since when.
	since, deaf time.Duration
}

func (s *simulation) observe(to store.Store) *observer {
	o := &observer{Sampler: New("local", to, func() fence.Instant { return s.at }), of: s, known: map[string]client.Object{}}
	o.read()
	return o
}

// read reads all that is there, as after a list.
func (o *observer) read() {
	for key, object := range o.known {
		if _, is := o.of.objects[key]; !is {
			o.Delete(object)
			delete(o.known, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(o.of.objects)) {
		if _, is := o.known[key]; is {
			continue
		}
		kept, err := slim(o.of.objects[key].DeepCopyObject())
		if err != nil {
			o.of.Fatal(err)
		}
		o.known[key] = kept.(client.Object)
		o.Put(o.known[key])
	}
	for _, kind := range []string{apps, pods, claims, services} {
		o.Followed(kind)
	}
}

// lose has the watches miss what happens for a while, of which nobody knows at first.
func (o *observer) lose(silent, down time.Duration) {
	o.since, o.deaf = o.of.at.Running, o.of.at.Running+silent+down
	o.of.Logf("from %s the watches are silent for %s, and then there are none for %s", o.of.now().Format(time.TimeOnly), silent, down)
}

// second delivers what changed, up to a second late.
func (o *observer) second(n int, silent time.Duration) {
	at := o.of.at.Running
	switch {
	case o.deaf == 0:
		o.of.at.Running += time.Duration(o.of.random.IntN(900)) * time.Millisecond
		o.read()
		o.of.at.Running = at
	case at >= o.deaf:
		o.deaf = 0
		o.read()
	case at == o.since+silent:
		for _, kind := range []string{apps, pods, claims, services} {
			o.Lost(kind, silent)
		}
	}
	if n%60 == 20 {
		o.sampleAll()
	}
	o.Pass(o.of.Context())
	if err := o.Write(o.of.Context()); err != nil {
		o.of.Error(err)
	}
}

func (o *observer) sampleAll() {
	answer := `{"items":[`
	for i, key := range slices.Sorted(maps.Keys(o.of.uses)) {
		if i > 0 {
			answer += ","
		}
		object, use := o.of.objects[key], o.of.uses[key]
		answer += fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q},"containers":[{"usage":{"cpu":"%dn","memory":"%d"}},{"usage":{"cpu":"0"}}]}`, object.GetNamespace(), object.GetName(), use[0], use[1])
	}
	if err := o.Sample([]byte(answer + "]}")); err != nil {
		o.of.Error(err)
	}
}

// TestUsageIsReconciledWithASimulation: what is stored is what was really used in the minutes that are said to be measured, to one percent
// at most. The watches break, the manager is restarted and stopped, two measure at the same time, and the clock of the machine jumps by an
// hour and back. What pods use by the metrics API is compared only where they live long enough.
func TestUsageIsReconciledWithASimulation(t *testing.T) {
	const silent = 40 * time.Second
	for seed, lives := range []time.Duration{2 * time.Hour, 2 * time.Hour, 2 * time.Hour, shortLife} {
		t.Run(fmt.Sprintf("seed %d, of things that live for %s", seed, lives), func(t *testing.T) {
			to, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "manager.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer to.Close()
			s := newSimulation(t, uint64(seed), lives)
			all := []*observer{s.observe(to)}
			for n := range int((4 * time.Hour).Seconds()) {
				s.second()
				switch n {
				case 2000, 6000, 6100:
					all[0].lose(silent, time.Duration(s.random.IntN(100))*time.Second)
				case 4000, 9000: // It is restarted.
					all = []*observer{s.observe(to)}
				case 10_000: // Another one takes itself for the leader, too.
					all = append(all, s.observe(to))
				case 11_000:
					all = all[1:]
				case 12_000:
					s.at.Wall = s.at.Wall.Add(time.Hour)
				case 12_300:
					s.at.Wall = s.at.Wall.Add(-time.Hour)
				}
				if n > 7000 && n < 7300 { // It is stopped.
					continue
				}
				for _, o := range all {
					o.second(n, silent)
				}
			}
			s.compare(to)
		})
	}
}

// compare compares what is stored with the truth in the minutes that are measured, for each project and app.
func (s *simulation) compare(to store.Store) {
	s.Helper()
	covered, err := to.ListCovered(s.Context(), began.Add(-24*time.Hour), began.Add(24*time.Hour))
	if err != nil {
		s.Fatal(err)
	}
	want, measured := map[tally.Owner]map[string]int64{}, map[meter.Group]int{}
	for _, c := range covered {
		for n := range 60 {
			if c.Minutes>>n&1 == 0 {
				continue
			}
			measured[c.Group]++
			for owner, amounts := range s.truth[c.Hour.Add(time.Duration(n)*time.Minute)] {
				for name, amount := range amounts {
					if meter.GroupOf(name) != c.Group || !s.compares(c.Group) {
						continue
					}
					if want[owner] == nil {
						want[owner] = map[string]int64{}
					}
					want[owner][name] += amount
				}
			}
		}
	}
	used, err := to.ListUsage(s.Context(), store.UsageQuery{From: began.Add(-24 * time.Hour), Until: began.Add(24 * time.Hour), Limit: 10_000})
	if err != nil {
		s.Fatal(err)
	}
	got := map[tally.Owner]meter.Amounts{}
	for _, u := range used {
		owner := tally.Owner{Tenant: u.Tenant, Project: u.Project, App: u.App}
		if got[owner] == nil {
			got[owner] = meter.Amounts{}
		}
		got[owner].Add(u.Amounts)
	}
	// 237 whole minutes end 90 s before the end. There are three losses, two restarts, and five minutes in which it is stopped.
	for _, g := range meter.Groups {
		if measured[g] < 205 || measured[g] > 237 {
			s.Errorf("%s was measured in %d minutes", g, measured[g])
		}
	}
	s.Logf("measured minutes: %v", measured)
	s.within(want, got)
}

// compares reports whether a group is compared: the metrics API misses what is gone within a minute.
func (s *simulation) compares(group meter.Group) bool {
	return group != meter.OfMetrics || s.lives != shortLife
}

// within checks each amount, and that nothing else was counted.
func (s *simulation) within(want map[tally.Owner]map[string]int64, got map[tally.Owner]meter.Amounts) {
	s.Helper()
	worst := map[string]float64{}
	compared := 0
	for owner, amounts := range want {
		for name, amount := range amounts {
			truth := float64(amount)
			if name == meter.CPURequested || name == meter.CPUUsed {
				truth /= 1e9
			}
			is := 0.0
			if found := got[owner][name]; found != nil {
				is = float(found)
				delete(got[owner], name)
			}
			compared++
			if part := is/truth - 1; max(part, -part) > max(worst[name], -worst[name]) {
				worst[name] = part
			}
			bound := 0.002
			switch {
			case meter.GroupOf(name) == meter.OfMetrics:
				bound = 0.01
			case s.lives == shortLife:
				bound = 0.005
			}
			if part := is/truth - 1; max(part, -part) > bound {
				s.Errorf("%v has %g of %s, and used %g: %.2f %%", owner, is, name, truth, 100*part)
			}
		}
	}
	for owner, left := range got {
		maps.DeleteFunc(left, func(name string, _ *inf.Dec) bool { return !s.compares(meter.GroupOf(name)) })
		if text := left.String(); text != "" {
			s.Errorf("%v has %s, and used none of it", owner, text)
		}
	}
	if compared < 60 {
		s.Errorf("only %d amounts were compared", compared)
	}
	s.Logf("%d amounts, at most wrong by %v", compared, worst)
}

func float(amount *inf.Dec) float64 {
	ratio := new(big.Rat).SetInt(amount.UnscaledBig())
	ratio.Quo(ratio, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(amount.Scale())), nil)))
	value, _ := ratio.Float64()
	return value
}
