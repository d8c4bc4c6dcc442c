package meter

import (
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAmountsAreExact: 8 EiB for an hour is beyond 64 bits, and a tenth of a core is no binary fraction.
func TestAmountsAreExact(t *testing.T) {
	bytes, _ := new(big.Int).SetString("9223372036854775808", 10)
	hour := Of(new(big.Int).Mul(bytes, big.NewInt(3_600_000)), 3)
	all := Amounts{}
	for range 10 {
		all.Add(Amounts{CPUUsed: Of(big.NewInt(100_000_000_000), 12), MemoryRequested: hour})
	}
	all.AddTo(Pods, Of(big.NewInt(0), 3))
	const want = "cpu.used=1 memory.requested=332041393326771929088000"
	if got := all.String(); got != want {
		t.Errorf("they are %s, want %s", got, want)
	}
	read, err := Read(want)
	if err != nil || read.String() != want {
		t.Errorf("read are %s: %v", read, err)
	}
	if got := Text(Of(big.NewInt(1_250), 3)); got != "1.25" {
		t.Errorf("1.250 is written %s", got)
	}
	if got := Text(Of(big.NewInt(1_200), 0)); got != "1200" {
		t.Errorf("1200 is written %s", got)
	}
	if all, err := Read("cpu.used=x"); err == nil {
		t.Errorf("it reads %v", all)
	}
}

// TestAddingLeavesWhatIsAdded: the same amounts are added to several sums.
func TestAddingLeavesWhatIsAdded(t *testing.T) {
	one := Amounts{Pods: Of(big.NewInt(5), 0)}
	sum := Amounts{}
	sum.Add(one)
	sum.Add(one)
	if one.String() != "pods=5" || sum.String() != "pods=10" {
		t.Errorf("%s and %s", one, sum)
	}
}

func TestParseAmountAcceptsExactDecimalsOnly(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "12.5": true, "0.00000000000000000001": true, strings.Repeat("9", 40): true,
		"": false, "-1": false, "+1": false, "1e9": false, "1e999999999": false, ".5": false, "5.": false, "01": false, "NaN": false, "1 ": false, "0x1": false, strings.Repeat("9", 41): false, "0.000000000000000000001": false,
	} {
		if amount, err := ParseAmount(text); (err == nil) != want {
			t.Errorf("%q: %v %v", text, amount, err)
		}
	}
}

func TestEachMeterHasAGroupAndAUnit(t *testing.T) {
	got := map[string]string{}
	for _, name := range []string{CPURequested, CPUUsed, MemoryRequested, MemoryUsed, Pods, LoadBalancers, Objects, StorageOf(""), StorageOf("fast.example.com"), "gpu", "storages", "cpu"} {
		got[name] = GroupOf(name) + " " + UnitOf(name)
	}
	if diff := cmp.Diff(map[string]string{
		"cpu.requested": "pods core-seconds", "cpu.used": "metrics core-seconds", "memory.requested": "pods byte-seconds", "memory.used": "metrics byte-seconds", "pods": "pods seconds",
		"loadbalancers": "services seconds", "objects": "objects seconds", "storage": "volumes byte-seconds", "storage/fast.example.com": "volumes byte-seconds", "gpu": " ", "storages": " ", "cpu": " ",
	}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, group := range Groups {
		for _, name := range NamesOf(group) {
			if GroupOf(name) != group {
				t.Errorf("%s is of %s, and not of %s", name, GroupOf(name), group)
			}
		}
	}
}
