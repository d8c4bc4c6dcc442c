//go:build e2e

package accidents

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bad is an accident in which app.yaml of the store is no good, and only that app is held.
func bad(slip, content string, says ...string) accident {
	return accident{
		slip: slip, on: own, fate: "that app stays unchanged; the other apps continue", mend: "the file is corrected",
		says: append([]string{"Current", "False", "apps/store/app.yaml"}, says...), place: app("store"), back: revert,
		do: all(func(s *scene) {
			s.commit("Break store", func() {
				s.must(s.repo.Write(s.expand("$r/apps/store/app.yaml"), []byte(content)))
				s.must(s.repo.Write(s.expand("$r/apps/note0/app.yaml"), []byte(strings.Replace(s.good[s.expand("$r/apps/note0/app.yaml")], "hello", "still here", 1))))
			})
		}, func(s *scene) {
			s.says(noteText("note0"), []string{"still here"})
		}),
	}
}

const appHead = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: store}\n"

// fileAccidents push files that are no good.
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
		slip: "app.yaml is removed, and the files beside it stay", on: own,
		fate: "the app stays unchanged", mend: "`git revert`",
		says: []string{"apps/store", "app.yaml"}, place: repository, back: revert,
		do: func(s *scene) {
			s.commit("Remove app.yaml", func() {
				s.must(s.repo.Remove(s.expand("$r/apps/store/app.yaml")))
				s.must(s.repo.Write(s.expand("$r/apps/store/notes.txt"), []byte("what this is about\n")))
			})
		},
	},
	{
		slip: "the folder of an app becomes a symbolic link", on: own,
		fate: "the app stays unchanged", mend: "`git revert`",
		says: []string{"apps/store"}, place: repository, back: revertLink,
		do: func(s *scene) {
			s.commit("Link store", func() {
				s.must(s.repo.Remove(s.expand("$r/apps/store")))
				s.must(os.Symlink("note0", filepath.Join(s.repo.Dir, s.expand("$r/apps/store"))))
			})
		},
	},
	{
		slip: "one app gets 60,000 files", on: own,
		fate: "that app stays unchanged; the other apps continue", mend: "`git revert`",
		says: []string{"Current", "False", "apps/note1"}, place: app("note1"), back: revert,
		do: func(s *scene) {
			for n := range 60000 {
				s.must(s.repo.Write(fmt.Sprintf("%s/apps/note1/many/%d/%d.txt", s.expand("$r"), n/1000, n), []byte("x")))
			}
			edit("$r/apps/note0/app.yaml", "hello", "beside many")(s)
			s.says(noteText("note0"), []string{"beside many"})
		},
	},
	{
		slip: "a script adds 300 apps", on: own,
		fate: "they are created; the tenant's other apps continue", mend: "`git revert`, and their removal is confirmed",
		says: []string{"Succeeded", "307 apps"}, place: repository, back: all(revert, confirm),
		do: func(s *scene) {
			s.commit("Many apps", func() {
				for n := range 300 {
					name := fmt.Sprintf("many%d", n)
					s.must(s.repo.Write(s.expand("$r/apps/"+name+"/app.yaml"), fmt.Appendf(nil, noteYAML, name)))
				}
			})
		},
	},
	{
		slip: "a manifest is larger than 1 MiB", on: own,
		fate: "that app reports it; its objects keep running, and the other apps continue", mend: "`git revert`",
		says: []string{"RenderFailed", "manifests/all.yaml", "a file may have 1048576"}, place: app("note1"), back: revert,
		do: func(s *scene) {
			s.commit("A large ConfigMap", func() {
				s.must(s.repo.Write(s.expand("$r/apps/note1/app.yaml"), []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: note1}\nspec: {type: Raw, raw: {path: manifests}}\n")))
				s.must(s.repo.Write(s.expand("$r/apps/note1/manifests/all.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note1}\ndata: {text: '"+strings.Repeat("x", 1<<20)+"'}\n")))
			})
			edit("$r/apps/note0/app.yaml", "hello", "beside a large one")(s)
			s.says(noteText("note0"), []string{"beside a large one"})
		},
	},
	{
		slip: "a typo in project.yaml", on: own,
		fate: "the project and its apps stay unchanged", mend: "the file is corrected",
		says: []string{"Current", "False", "projects/shop/project.yaml"}, place: project, back: revert,
		do: write("$r/project.yaml", strings.Replace(projectYAML, "%s", "shop", 1)+"spec: {quotta: {}}\n"),
	},
	{
		slip: "a typo in tenant.yaml", on: inPlatform,
		fate: "the tenant stays unchanged; the others continue", mend: "the file is corrected",
		says: []string{"tenants/$t/tenant.yaml"}, place: platformRepository, back: revert,
		do: editTenant("owners:", "ovners:"),
	},
	{
		slip: "tenant.yaml is emptied", on: own,
		fate: "the tenant stays unchanged", mend: "the file is corrected",
		says: []string{"tenants/$t/tenant.yaml"}, place: platformRepository, back: revertTenant,
		do: func(s *scene) {
			s.inRoot("Empty "+s.tenant, func() { s.must(root.Write(s.expand("tenants/$t/tenant.yaml"), nil)) })
		},
	},
	{
		slip: "tenant.yaml names another tenant", on: inPlatform,
		fate: "the tenant stays unchanged", mend: "the file is corrected",
		says: []string{"tenants/$t/tenant.yaml"}, place: platformRepository, back: revert,
		do: editTenant("name: $t}", "name: $tx}"),
	},
	{
		slip: "a stray file in tenants/", on: inPlatform,
		fate: "the Repository reports it; every tenant continues", mend: "the file is removed",
		says: []string{"tenants/$t.yaml"}, place: platformRepository,
		do: all(func(s *scene) {
			s.inRoot("Stray", func() { s.must(root.Write(s.expand("tenants/$t.yaml"), []byte("a: b\n"))) })
		}, edit("$r/apps/note0/app.yaml", "hello", "beside a stray"), func(s *scene) {
			s.says(noteText("note0"), []string{"beside a stray"})
		}),
		back: all(revert, func(s *scene) {
			s.inRoot("No stray", func() { s.must(root.Remove(s.expand("tenants/$t.yaml"))) })
		}),
	},
	{
		slip: "a stray file in projects/", on: own,
		fate: "the Repository reports it; the projects continue", mend: "the file is removed",
		says: []string{"projects/notes.yaml"}, place: repository,
		do: all(write("projects/notes.yaml", "a: b\n"), edit("$r/apps/note0/app.yaml", "hello", "beside a stray"), func(s *scene) {
			s.says(noteText("note0"), []string{"beside a stray"})
		}),
		back: revert,
	},
	{
		slip: "kubeop.yaml names an unknown layout", on: own,
		fate: "nothing of the commit is applied", mend: "the file is corrected",
		says: []string{"kubeop.yaml"}, place: repository, back: revert, do: write("kubeop.yaml", "layout: v9\n"),
	},
	{
		slip: "the type of an app is changed", on: own,
		fate: "refused; the app continues unchanged", mend: "`git revert`",
		says: []string{"store", "type"}, place: repository, back: revert,
		do: write("$r/apps/store/app.yaml", fmt.Sprintf(noteYAML, "store")),
	},
	{
		slip: "an image does not exist", on: own,
		fate: "the app reports it; its claim stays", mend: "`git revert`",
		says: []string{"hello:v9"}, place: app("store"), back: revert, gone: true, newPods: true,
		do: edit("$r/apps/store/app.yaml", "hello:v1", "hello:v9"),
	},
	{
		slip: "a quota is set below the present use", on: own,
		fate: "what runs stays", mend: "`git revert`",
		says: []string{"requests.storage"}, place: output("get resourcequota -n $ns -o yaml"), back: revert,
		do: write("$r/project.yaml", strings.Replace(projectYAML, "%s", "shop", 1)+"spec: {quota: {requests.storage: 100Ki}}\n"),
	},
}

// revertLink removes the link before the folder is made again.
func revertLink(s *scene) {
	s.must(os.Remove(filepath.Join(s.repo.Dir, s.expand("$r/apps/store"))))
	revert(s)
}
