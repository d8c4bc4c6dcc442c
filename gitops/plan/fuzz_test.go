package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

// commitOf makes a commit of text: two bytes are one removed object, of few names, so that objects are often inside each other.
func commitOf(text []byte, emptied, foreign bool) Commit {
	c := Commit{Revision: "main@sha1:0123456789abcdef", Emptied: emptied, Foreign: foreign, Apps: map[string]int{}}
	seen := map[identity.Ref]bool{}
	for i := 0; i+1 < len(text) && i < 60; i += 2 {
		ref := identity.Ref{Tenant: string(rune('a' + text[i]%3))}
		if text[i]&0x10 != 0 {
			ref.Project = string(rune('p' + text[i]>>5%4))
		}
		if ref.Project != "" && text[i+1]&0x01 != 0 {
			ref.App = fmt.Sprintf("w%d", text[i+1]>>1%16)
		}
		if seen[ref] {
			continue
		}
		seen[ref] = true
		l := Loss{Ref: ref, UID: ref.Path()}
		if ref.App == "" {
			l.Apps, l.Namespaces = int(text[i+1]>>4), []string{"kubeop-" + ref.Tenant}
		}
		if ref.App == "" && ref.Project != "" && text[i+1]&0x02 != 0 {
			l.Claims = []Claim{{Namespace: "kubeop-" + ref.Tenant, Name: "data", UID: "claim-" + ref.Path(), Size: "1Gi", Goes: text[i+1]&0x04 != 0}}
		}
		c.Losses = append(c.Losses, l)
		c.Apps[ref.Tenant] += 1 + l.Apps
	}
	return c
}

// FuzzWeigh checks for any commit that no object is forgotten or decided twice, that what holds other things waits, and that only the token of
// exactly this list confirms it.
func FuzzWeigh(f *testing.F) {
	f.Add([]byte("\x00\x00\x10\x01\x10\x02"), false, false, "")
	f.Add([]byte("\x10\x03\x10\x05\x10\x07\x10\x09\x10\x0b\x10\x0d\x10\x0f"), false, true, "0123456789ab-0011223344556677")
	f.Fuzz(func(t *testing.T, text []byte, emptied, foreign bool, confirmation string) {
		c := commitOf(text, emptied, foreign)
		v := c.Weigh(confirmation)
		confirmed := len(v.Held) == 0 && v.Token != ""
		if confirmed && confirmation != v.Token {
			t.Fatalf("%q confirms %s", confirmation, v.Token)
		}
		decided := map[identity.Ref]int{}
		for _, l := range slices.Concat(v.Go, v.Held) {
			decided[l.Ref]++
		}
		for _, l := range c.Losses {
			parent := l.Ref.Parent()
			if inside := decided[parent] + decided[parent.Parent()]; decided[l.Ref] != 1 && (decided[l.Ref] != 0 || inside == 0) {
				t.Fatalf("%s is decided %d times", l.Ref, decided[l.Ref])
			}
		}
		for _, l := range v.Go {
			if !confirmed && (emptied || foreign || l.Ref.Kind() == v1alpha1.TenantKind || len(l.Claims) > 0) {
				t.Fatalf("%s goes without a confirmation: %+v", l.Ref, l)
			}
		}
		if (len(v.Held) > 0) != (v.Why != "" && len(v.Lines) > 0) {
			t.Fatalf("%d are held: %q %q", len(v.Held), v.Why, v.Lines)
		}
		if len(v.Held) == 0 {
			return
		}
		if all := c.Weigh(v.Token); len(all.Held) > 0 || len(all.Go) != len(v.Go)+len(v.Held) {
			t.Fatalf("after the confirmation %d go and %d are held", len(all.Go), len(all.Held))
		}
		again := Commit{Revision: c.Revision, Losses: slices.Clone(c.Losses), Apps: c.Apps, Emptied: emptied, Foreign: foreign}
		for i := range again.Losses {
			again.Losses[i].UID += "-2"
		}
		if again.Weigh(v.Token).Token == v.Token || len(again.Weigh(v.Token).Held) == 0 {
			t.Fatal("the confirmation is also valid for objects that were created again")
		}
	})
}
