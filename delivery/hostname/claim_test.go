package hostname

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestAHostNameHasOneForm: all spellings of a name have the same claim.
func TestAHostNameHasOneForm(t *testing.T) {
	long := strings.Repeat("a.", 126) + "a"
	for host, want := range map[string]string{
		"shop.example": "shop.example", "SHOP.Example": "shop.example", "shop.example.": "shop.example",
		"bücher.example": "xn--bcher-kva.example", "BÜCHER.example": "xn--bcher-kva.example", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"XN--BCHER-KVA.example": "xn--bcher-kva.example", "ｓｈｏｐ.example": "shop.example", "shop。example": "shop.example", "straße.example": "xn--strae-oqa.example",
		"*.shop.example": "*.shop.example", "*.SHOP.example.": "*.shop.example", "*.bücher.example": "*.xn--bcher-kva.example",
		"ab--cd.example": "ab--cd.example", "local": "local", long: long,
		"wildcard--off.example": "wildcard--off.example", "a.wildcard--of.example": "a.wildcard--of.example",
	} {
		if got, err := Normalize(host); got != want || err != nil {
			t.Errorf("%q is %q, %v, want %q", host, got, err, want)
		}
		if name := ClaimName(want); len(validation.IsDNS1123Subdomain(name)) > 0 {
			t.Errorf("%q is no name of an object", name)
		}
	}
	for host, want := range map[string]string{
		"": "is no host name", ".": "is no host name", "*": "is no host name", "*.": "is no host name", "a.*.example": "is no host name", "*.*.example": "is no host name",
		"a b.example": "is no host name", "a_b.example": "is no host name", "xn--a.example": "is no host name", "-a.example": "is no host name",
		"wildcard--of.shop.example": "begins with wildcard--of., which stands for wildcards", "Wildcard--Of.shop.example": "begins with wildcard--of., which stands for wildcards",
		"*.wildcard--of.example": "begins with wildcard--of., which stands for wildcards", "a." + long: "is longer than 253 characters",
		"*." + long: "is longer than 253 characters", strings.Repeat("é", 600): "is longer than 253 characters",
	} {
		if got, err := Normalize(host); err == nil || err.Error() != want {
			t.Errorf("%q is %q, %v, want the error %q", host, got, err, want)
		}
	}
}

func TestAWildcardHasANameOfItsOwn(t *testing.T) {
	if got := ClaimName("*.shop.example"); got != "wildcard--of.shop.example" {
		t.Errorf("got %s", got)
	}
	if got, want := Wildcards("a.shop.example"), []string{"*.shop.example", "*.example"}; !slices.Equal(got, want) {
		t.Errorf("a name is under %v, want %v", got, want)
	}
	if got, want := Wildcards("*.shop.example"), []string{"*.example"}; !slices.Equal(got, want) {
		t.Errorf("a wildcard is under %v, want %v", got, want)
	}
	for name, want := range map[string]bool{
		"a.shop.example": true, "a.b.shop.example": true, "*.a.shop.example": true, "shop.example": false, "*.shop.example": false, "evilshop.example": false, "*.example": false,
	} {
		if got := Covers("*.shop.example", name); got != want {
			t.Errorf("*.shop.example has %s: %t", name, got)
		}
	}
	if Covers("shop.example", "a.shop.example") {
		t.Error("a name has another one")
	}
}
