package tree

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/gitops/identity"
)

var ghcr = identity.Ref{Registry: "ghcr"}

// withRegistries is a platform repository with two registries, of which one names a tenant and a policy.
func withRegistries() map[string]string {
	texts := withPolicies()
	texts["registries/ghcr.yaml"] = declaration("Registry", "ghcr", "{host: ghcr.io, secretRef: {name: ghcr}, tenants: [rival], policies: [strict]}")
	texts["registries/quay.yaml"] = declaration("Registry", "quay", "{host: quay.io, secretRef: {name: quay}}")
	return texts
}

// TestARegistryIsRefusedAsLongAsAnotherFileIsWrong. Its own file does not change, and is not read again.
func TestARegistryIsRefusedAsLongAsAnotherFileIsWrong(t *testing.T) {
	const tenant, policy, other = "tenants/rival/tenant.yaml", "policies/strict.yaml", "registries/second.yaml"
	second := declaration("Registry", "second", "{host: ghcr.io, secretRef: {name: second}, tenants: [rival]}")
	for name, c := range map[string]struct {
		change  func(map[string]string)
		refused string
	}{
		"the tenant is missing": {func(m map[string]string) { delete(m, tenant) }, "Registry ghcr"},
		"the policy is missing": {func(m map[string]string) {
			delete(m, policy)
			m["tenants/acme/tenant.yaml"] = declaration("Tenant", "acme", "{}")
		}, "Registry ghcr"},
		"the tenant has another one of the host": {func(m map[string]string) { m[other] = second }, "Registry ghcr, Registry second"},
		"the policy of both of a host is missing": {func(m map[string]string) {
			delete(m, policy)
			m["tenants/acme/tenant.yaml"] = declaration("Tenant", "acme", "{}")
			m[other] = strings.Replace(second, "tenants: [rival]", "policies: [strict]", 1)
		}, "Registry ghcr, Registry second"},
	} {
		t.Run(name, func(t *testing.T) {
			texts := withRegistries()
			sound := fresh(filesOf(texts), Scope{})
			if found := problems(sound); len(found) > 0 {
				t.Fatalf("problems: %v", found)
			}
			c.change(texts)
			wrong := shared.Read(filesOf(texts), Scope{}, sound)
			var refused []string
			for _, d := range wrong.Registries {
				if !d.Declared() {
					refused = append(refused, d.Ref().String())
				}
			}
			if got := strings.Join(refused, ", "); got != c.refused {
				t.Errorf("refused are %s, want %s", got, c.refused)
			}
			again := shared.Read(filesOf(texts), Scope{}, wrong)
			if changed := changes(wrong, again); len(changed) > 0 {
				t.Errorf("nothing changed, and yet: %v", changed)
			}
			texts["registries/quay.yaml"] += "# more\n"
			counted := &counting{Files: filesOf(texts), opened: map[string]int{}}
			if changed := changes(again, shared.Read(counted, Scope{}, again)); len(changed) != 1 || changed[0] != "quay" {
				t.Errorf("quay changed, and not only: %v", changed)
			}
			mended := shared.Read(filesOf(withRegistries()), Scope{}, again)
			if diff := cmp.Diff(describe(sound), describe(mended)); diff != "" {
				t.Errorf("after it was mended (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARegistryIsNotLostWhileItsFileOrFolderCannotBeRead: then the commit does not say that there is none.
func TestARegistryIsNotLostWhileItsFileOrFolderCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		change                func(repository) Files
		there, covers, unread bool
	}{
		"it is there": {func(r repository) Files { return r }, true, true, false},
		"it is gone":  {func(r repository) Files { delete(r, "registries/ghcr.yaml"); return r }, false, true, false},
		"it is a link": {func(r repository) Files {
			r["registries/ghcr.yaml"] = link("quay.yaml")
			return r
		}, true, true, false},
		"the folder is a link": {func(r repository) Files {
			delete(r, "registries/ghcr.yaml")
			delete(r, "registries/quay.yaml")
			r["registries"] = link("elsewhere")
			return r
		}, false, false, false},
		"the folder cannot be listed": {func(r repository) Files { return &failing{r, "registries"} }, false, false, true},
		"there is no layout":          {func(r repository) Files { delete(r, "kubeop.yaml"); return r }, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fresh(c.change(filesOf(withRegistries())), Scope{})
			node, there := tree.Find(ghcr)
			if there != c.there || tree.Covers(ghcr) != c.covers {
				t.Errorf("there %t, covered %t, want %t and %t", there, tree.Covers(ghcr), c.there, c.covers)
			}
			if there && tree.File(node) != "registries/ghcr.yaml" {
				t.Errorf("its file is %s", tree.File(node))
			}
			if file, err := tree.Unread(); (err != nil) != c.unread || c.unread != (file == "registries") {
				t.Errorf("unread is %q, %v", file, err)
			}
		})
	}
}

// TestARegistryIsNotRefusedBecauseOfWhatCannotBeRead: its tenant and its policy may be declared.
func TestARegistryIsNotRefusedBecauseOfWhatCannotBeRead(t *testing.T) {
	for _, folder := range []string{"tenants", "policies"} {
		tree := fresh(&failing{filesOf(withRegistries()), folder}, Scope{})
		if node, _ := tree.Find(ghcr); !node.Declared() {
			t.Errorf("without %s: %v", folder, node.Problems())
		}
	}
}

// unsized is a store that does not know the sizes of files.
type unsized struct{ repository }

func (u unsized) Sub(path string) (Files, error) { return sub{u, path}, nil }

func (u unsized) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(u.repository, name)
	for i := range entries {
		entries[i] = sizeless{entries[i]}
	}
	return entries, err
}

type sizeless struct{ fs.DirEntry }

func (sizeless) Info() (fs.FileInfo, error) { return nil, fs.ErrPermission }

// TestAFileWhoseSizeIsNotKnownIsReadLater, if it might not fit into the limit.
func TestAFileWhoseSizeIsNotKnownIsReadLater(t *testing.T) {
	for file, bytes := range map[string]int64{"policies/baseline.yaml": 64 << 10, "": 64 << 20} {
		tree := bounded(bytes).Read(unsized{filesOf(withPolicies())}, Scope{}, nil)
		if got, err := tree.Unread(); got != file || (err != nil) != (file != "") {
			t.Errorf("with %d bytes unread is %q, %v, want %q", bytes, got, err, file)
		}
	}
}
