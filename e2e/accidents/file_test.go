//go:build e2e

package accidents

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bad is an accident in which app.yaml of the store is invalid, and only that app is held.
func bad(mistake, content string, reports ...string) accident {
	return accident{
		mistake: mistake, on: own, outcome: "that app stays unchanged; the other apps continue", recovery: "the file is corrected",
		reports: append([]string{"Current", "False", "apps/store/app.yaml"}, reports...), read: app("store"), undo: revert,
		do: all(func(s *subject) {
			s.commit("Break store", func() {
				s.must(s.repo.Write(s.expand("$r/apps/store/app.yaml"), []byte(content)))
				s.must(s.repo.Write(s.expand("$r/apps/note0/app.yaml"), []byte(strings.Replace(s.good[s.expand("$r/apps/note0/app.yaml")], "hello", "still here", 1))))
			})
		}, func(s *subject) {
			s.mustReport(noteText("note0"), []string{"still here"})
		}),
	}
}

const appHead = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: store}\n"

// fileAccidents push invalid files.
var fileAccidents = []accident{
	bad("a typo in app.yaml", appHead+"spec: {type: Image, imagee: {reference: hello}}\n", "imagee"),
	bad("app.yaml is emptied", ""),
	bad("app.yaml has the markers of a merge conflict", appHead+"<<<<<<< HEAD\nspec: {type: Image}\n=======\nspec: {type: Raw}\n>>>>>>> other\n"),
	bad("app.yaml has a key twice", appHead+"spec: {type: Image, image: {reference: hello}}\nspec: {type: Raw}\n"),
	bad("app.yaml is indented with tabs", appHead+"spec:\n\ttype: Image\n"),
	bad("app.yaml names another app", strings.Replace(appHead, "store", "shop", 1)+"spec: {type: Image, image: {reference: hello}}\n", "store"),
	bad("app.yaml is binary", string(bytes.Repeat([]byte{0, 1, 2, 255}, 100))),
	bad("app.yaml is 6 MiB long", appHead+"# "+strings.Repeat("x", 6<<20)+"\n"),
	bad("app.yaml is of another kind", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: store}\n"),
	bad("app.yaml has two documents", appHead+"spec: {type: Image, image: {reference: hello}}\n---\n"+appHead+"spec: {type: Raw}\n"),
	{
		mistake: "app.yaml is removed, and the files beside it stay", on: own,
		outcome: "the app stays unchanged", recovery: "`git revert`",
		reports: []string{"apps/store", "app.yaml"}, read: repository, undo: revert,
		do: func(s *subject) {
			s.commit("Remove app.yaml", func() {
				s.must(s.repo.Remove(s.expand("$r/apps/store/app.yaml")))
				s.must(s.repo.Write(s.expand("$r/apps/store/notes.txt"), []byte("what this is about\n")))
			})
		},
	},
	{
		mistake: "the folder of an app becomes a symbolic link", on: own,
		outcome: "the app stays unchanged", recovery: "`git revert`",
		reports: []string{"apps/store"}, read: repository, undo: revertLink,
		do: func(s *subject) {
			s.commit("Link store", func() {
				s.must(s.repo.Remove(s.expand("$r/apps/store")))
				s.must(os.Symlink("note0", filepath.Join(s.repo.Dir, s.expand("$r/apps/store"))))
			})
		},
	},
	{
		mistake: "one app gets 60,000 files", on: own,
		outcome: "that app stays unchanged; the other apps continue", recovery: "`git revert`",
		reports: []string{"Current", "False", "apps/note1"}, read: app("note1"), undo: revert,
		do: func(s *subject) {
			for n := range 60000 {
				s.must(s.repo.Write(fmt.Sprintf("%s/apps/note1/many/%d/%d.txt", s.expand("$r"), n/1000, n), []byte("x")))
			}
			edit("$r/apps/note0/app.yaml", "hello", "beside many")(s)
			s.mustReport(noteText("note0"), []string{"beside many"})
		},
	},
	{
		mistake: "a script adds 300 apps", on: own,
		outcome: "they are created; the tenant's other apps continue", recovery: "`git revert`, and their removal is confirmed",
		reports: []string{"Succeeded", "307 apps"}, read: repository, undo: all(revert, confirm),
		do: func(s *subject) {
			s.commit("Many apps", func() {
				for n := range 300 {
					name := fmt.Sprintf("many%d", n)
					s.must(s.repo.Write(s.expand("$r/apps/"+name+"/app.yaml"), fmt.Appendf(nil, noteYAML, name)))
				}
			})
		},
	},
	{
		mistake: "a manifest is larger than 1 MiB", on: own,
		outcome: "that app reports it; its objects keep running, and the other apps continue", recovery: "`git revert`",
		reports: []string{"RenderFailed", "manifests/all.yaml", "a file may have 1048576"}, read: app("note1"), undo: revert,
		do: func(s *subject) {
			s.commit("A large ConfigMap", func() {
				s.must(s.repo.Write(s.expand("$r/apps/note1/app.yaml"), []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: note1}\nspec: {type: Raw, raw: {path: manifests}}\n")))
				s.must(s.repo.Write(s.expand("$r/apps/note1/manifests/all.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note1}\ndata: {text: '"+strings.Repeat("x", 1<<20)+"'}\n")))
			})
			edit("$r/apps/note0/app.yaml", "hello", "beside a large one")(s)
			s.mustReport(noteText("note0"), []string{"beside a large one"})
		},
	},
	{
		mistake: "a typo in project.yaml", on: own,
		outcome: "the project and its apps stay unchanged", recovery: "the file is corrected",
		reports: []string{"Current", "False", "projects/shop/project.yaml"}, read: project, undo: revert,
		do: write("$r/project.yaml", strings.Replace(projectYAML, "%s", "shop", 1)+"spec: {quotta: {}}\n"),
	},
	{
		mistake: "a typo in tenant.yaml", on: inPlatform,
		outcome: "the tenant stays unchanged; the others continue", recovery: "the file is corrected",
		reports: []string{"tenants/$t/tenant.yaml"}, read: platformRepository, undo: revert,
		do: editTenant("owners:", "ovners:"),
	},
	{
		mistake: "tenant.yaml is emptied", on: own,
		outcome: "the tenant stays unchanged", recovery: "the file is corrected",
		reports: []string{"tenants/$t/tenant.yaml"}, read: platformRepository, undo: revertTenant,
		do: func(s *subject) {
			s.inRoot("Empty "+s.tenant, func() { s.must(root.Write(s.expand("tenants/$t/tenant.yaml"), nil)) })
		},
	},
	{
		mistake: "tenant.yaml names another tenant", on: inPlatform,
		outcome: "the tenant stays unchanged", recovery: "the file is corrected",
		reports: []string{"tenants/$t/tenant.yaml"}, read: platformRepository, undo: revert,
		do: editTenant("name: $t}", "name: $tx}"),
	},
	{
		mistake: "a stray file in tenants/", on: inPlatform,
		outcome: "the Repository reports it; every tenant continues", recovery: "the file is removed",
		reports: []string{"tenants/$t.yaml"}, read: platformRepository,
		do: all(func(s *subject) {
			s.inRoot("Stray", func() { s.must(root.Write(s.expand("tenants/$t.yaml"), []byte("a: b\n"))) })
		}, edit("$r/apps/note0/app.yaml", "hello", "beside a stray"), func(s *subject) {
			s.mustReport(noteText("note0"), []string{"beside a stray"})
		}),
		undo: all(revert, func(s *subject) {
			s.inRoot("No stray", func() { s.must(root.Remove(s.expand("tenants/$t.yaml"))) })
		}),
	},
	{
		mistake: "a stray file in projects/", on: own,
		outcome: "the Repository reports it; the projects continue", recovery: "the file is removed",
		reports: []string{"projects/notes.yaml"}, read: repository,
		do: all(write("projects/notes.yaml", "a: b\n"), edit("$r/apps/note0/app.yaml", "hello", "beside a stray"), func(s *subject) {
			s.mustReport(noteText("note0"), []string{"beside a stray"})
		}),
		undo: revert,
	},
	{
		mistake: "kubeop.yaml names an unknown layout", on: own,
		outcome: "nothing of the commit is applied", recovery: "the file is corrected",
		reports: []string{"kubeop.yaml"}, read: repository, undo: revert, do: write("kubeop.yaml", "layout: v9\n"),
	},
	{
		mistake: "the type of an app is changed", on: own,
		outcome: "refused; the app continues unchanged", recovery: "`git revert`",
		reports: []string{"store", "type"}, read: repository, undo: revert,
		do: write("$r/apps/store/app.yaml", fmt.Sprintf(noteYAML, "store")),
	},
	{
		mistake: "an image does not exist", on: own,
		outcome: "the app reports it; its claim stays", recovery: "`git revert`",
		reports: []string{"hello:v9"}, read: app("store"), undo: revert, gone: true, newPods: true,
		do: edit("$r/apps/store/app.yaml", "hello:v1", "hello:v9"),
	},
	{
		mistake: "a quota is set below the present use", on: own,
		outcome: "what runs stays", recovery: "`git revert`",
		reports: []string{"requests.storage"}, read: output("get resourcequota -n $ns -o yaml"), undo: revert,
		do: write("$r/project.yaml", strings.Replace(projectYAML, "%s", "shop", 1)+"spec: {quota: {requests.storage: 100Ki}}\n"),
	},
}

// revertLink removes the link before the folder is created again.
func revertLink(s *subject) {
	s.must(os.Remove(filepath.Join(s.repo.Dir, s.expand("$r/apps/store"))))
	revert(s)
}
