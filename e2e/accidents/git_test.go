//go:build e2e

package accidents

import (
	"fmt"
	"strings"
)

// held are the words of every deletion that waits.
var held = []string{"DeletionsHeld", "paas.kubeop.io/confirm-deletions="}

// gitAccidents take something out of Git, or change its history.
var gitAccidents = []accident{
	{
		slip: "the folder of a tenant is removed from the platform repository", on: inPlatform,
		fate: "held: the tenant, its projects, apps and claims stay", mend: "`git revert`",
		says: append(held, "Tenant $t", "$ns/store-data"), do: remove("tenants/$t"), place: platformRepository, back: revert,
	},
	{
		slip: "tenant.yaml of a tenant with a repository of its own is removed", on: own,
		fate: "held: nothing of the tenant is deleted, and kubeop still follows its repository", mend: "`git revert`",
		says: append(held, "Tenant $t", "$ns/store-data"), place: platformRepository,
		do: func(s *scene) {
			s.inRoot("Remove "+s.tenant, func() { s.must(root.Remove(s.expand("tenants/$t"))) })
		},
		back: revertTenant,
	},
	{
		slip: "tenant.yaml is removed, and the projects beside it stay", on: inPlatform,
		fate: "the tenant and everything it has stay unchanged", mend: "`git revert`",
		says: []string{"tenants/$t", "tenant.yaml"}, do: remove("tenants/$t/tenant.yaml"), place: platformRepository, back: revert,
	},
	{
		slip: "a project is removed from a tenant's repository", on: own,
		fate: "held, because its claim holds data", mend: "`git revert`",
		says: append(held, "$ns/store-data"), do: remove("$r"), place: repository, back: revert,
	},
	{
		slip: "a project is removed from the platform repository", on: inPlatform,
		fate: "held, because its claim holds data", mend: "`git revert`",
		says: append(held, "$ns/store-data"), do: remove("$r"), place: platformRepository, back: revert,
	},
	{
		slip: "six of seven apps are removed by one commit", on: own,
		fate: "held: more than five, and more than a fifth of the tenant's", mend: "`git revert`",
		says: append(held, "note0"), place: repository, back: revert,
		do: remove("$r/apps/note0", "$r/apps/note1", "$r/apps/note2", "$r/apps/note3", "$r/apps/note4", "$r/apps/note5"),
	},
	{
		slip: "everything but kubeop.yaml is removed", on: own,
		fate: "held", mend: "`git revert`", says: append(held, "$ns/store-data"), do: remove("projects"), place: repository, back: revert,
	},
	{
		slip: "kubeop.yaml is removed with everything else", on: own,
		fate: "nothing of the commit is applied", mend: "`git revert`",
		says: []string{"kubeop.yaml"}, do: remove("projects", "kubeop.yaml"), place: repository, back: revert,
	},
	{
		slip: "project.yaml is removed, and the apps beside it stay", on: own,
		fate: "the project stays unchanged", mend: "`git revert`",
		says: []string{"projects/shop", "project.yaml"}, do: remove("$r/project.yaml"), place: repository, back: revert,
	},
	{
		slip: "the folder of a project is renamed", on: own,
		fate: "the deletion of the old project is held, with its data; the new one starts empty", mend: "`git revert`, and the removal of the new one is confirmed",
		says: append(held, "$ns/store-data"), place: repository, back: all(revert, confirm),
		do: all(move("projects/shop", "projects/store"), edit("projects/store/project.yaml", "shop", "store")), newPods: true,
	},
	{
		slip: "an app with a volume is removed", on: own,
		fate: "its pods are deleted; the claim and its data stay", mend: "`git revert`: the app mounts its claim again",
		says: []string{"Kept", "PersistentVolumeClaim/store-data"}, do: remove("$r/apps/store"), place: events, back: revert, gone: true,
	},
	{
		slip: "an app with a volume is renamed", on: own,
		fate: "the new app says that it starts empty; the old claim stays", mend: "`movedFrom`, or `git revert`",
		says: []string{"movedFrom", "store"}, place: app("depot"), back: revert, gone: true,
		do: renameStore(""),
	},
	{
		slip: "an app with a volume is renamed, and its warning is ignored", on: own,
		fate: "the new app runs with an empty claim beside the old one", mend: "`movedFrom`: it mounts the former claim",
		says: []string{"movedFrom: {app: store}"}, place: app("depot"), gone: true,
		do: all(renameStore(""), func(s *scene) { s.says(output("get pvc depot-data -n $ns"), []string{"Bound"}) }),
		back: all(renameStore("  movedFrom: {app: store}\n"), func(s *scene) {
			s.says(output("get deployment depot -n $ns -o yaml"), []string{"claimName: store-data"})
			s.says(app("depot"), []string{"Succeeded"})
		}, revert),
	},
	{
		slip: "an app with a volume is moved to another project", on: own,
		fate: "its data stays in the old project; the new app starts empty", mend: "`git revert`, and the removal of the new project is confirmed",
		says: []string{"StartedEmpty", "claim store-data starts empty here", "$ns"}, place: appIn("other", "store"), back: all(revert, confirm), gone: true,
		do: func(s *scene) {
			s.commit("Move store", func() {
				s.must(s.repo.Remove(s.expand("$r/apps/store")))
				s.must(s.repo.Write("projects/other/project.yaml", fmt.Appendf(nil, projectYAML, "other")))
				s.must(s.repo.Write("projects/other/apps/store/app.yaml", []byte(s.good[s.expand("$r/apps/store/app.yaml")])))
			})
		},
	},
	{
		slip: "the volume is removed from app.yaml", on: own,
		fate: "the pod is replaced by one without it; the claim stays", mend: "`git revert`",
		says: []string{"PersistentVolumeClaim store-data: holds data"}, place: app("store"), back: revert, newPods: true,
		do: all(edit("$r/apps/store/app.yaml", "    volumes: [{name: data, mountPath: /data, size: 1Mi}]\n", ""),
			edit("$r/apps/store/app.yaml", "    env: [{name: STARTS, value: /data/starts}]\n", "")),
	},
	{
		slip: "the volume is renamed", on: own,
		fate: "a new claim is created; the old one stays", mend: "`git revert`",
		says: []string{"PersistentVolumeClaim store-data: holds data"}, place: app("store"), back: revert, newPods: true,
		do: edit("$r/apps/store/app.yaml", "name: data, mountPath", "name: files, mountPath"),
	},
	{
		slip: "the volume is made smaller", on: own,
		fate: "the API server refuses it; the app continues unchanged", mend: "`git revert`",
		says: []string{"store-data"}, place: app("store"), back: revert,
		do: edit("$r/apps/store/app.yaml", "size: 1Mi", "size: 512Ki"),
	},
	{
		slip: "one commit removes an app and the next restores it, both in one push", on: own,
		fate: "nothing", mend: "not needed", says: []string{"Succeeded"}, place: repository, back: none,
		do: func(s *scene) {
			s.must(s.repo.Remove("projects"))
			_, err := s.repo.Git(s.t.Context(), "commit", "--quiet", "--all", "--message", "Remove all")
			s.must(err)
			s.restoreFiles()
			s.push("Bring all back")
		},
	},
	{
		slip: "a project is removed, and the next commit changes another", on: own,
		fate: "the change is applied, the deletion stays held", mend: "`git revert`",
		says: append(held, "$ns/store-data"), place: repository, back: revert,
		do: all(remove("$r"), write("projects/next/project.yaml", fmt.Sprintf(projectYAML, "next")), func(s *scene) {
			s.says(output("get projects -n $home"), []string{"next"})
		}),
	},
	{
		slip: "a deletion is confirmed with a wrong token", on: own,
		fate: "it stays held", mend: "`git revert`",
		says: append(held, "$ns/store-data"), place: repository, back: revert,
		do: all(remove("$r"), kubectl("annotate repository $t --overwrite paas.kubeop.io/confirm-deletions=yes")),
	},
	{
		slip: "the tree of another repository is pushed", on: own,
		fate: "held: the tree declares nothing of what is applied", mend: "`git revert`",
		says: append(held, "$ns/store-data"), place: repository, back: revert, newPods: true,
		do: func(s *scene) {
			s.commit("Another's tree", func() {
				s.must(s.repo.Remove("projects"))
				s.must(s.repo.Write("projects/theirs/project.yaml", fmt.Appendf(nil, projectYAML, "theirs")))
			})
		},
	},
	{
		slip: "force-push to an older commit", on: own,
		fate: "held: nothing of it is applied", mend: "the commit is pushed again, or accepted by `paas.kubeop.io/confirm-history`",
		says: []string{"HistoryRewritten", "paas.kubeop.io/confirm-history="}, place: repository,
		do: func(s *scene) {
			s.commit("One more", func() { s.must(s.repo.Write("README.md", []byte(s.tenant))) })
			s.says(repository, []string{head(s)})
			forcePush(s, "HEAD~1")
		},
		back: func(s *scene) { forcePush(s, "main") },
	},
	{
		slip: "force-push of an unrelated history", on: own,
		fate: "held: nothing of it is applied", mend: "force-push of the right one, or `paas.kubeop.io/confirm-history`",
		says: []string{"HistoryRewritten", "paas.kubeop.io/confirm-history="}, place: repository,
		do: func(s *scene) {
			for _, args := range [][]string{
				{"checkout", "--quiet", "--orphan", "foreign"}, {"rm", "-r", "--quiet", "--cached", "."},
				{"commit", "--quiet", "--allow-empty", "--message", "Another beginning"}, {"checkout", "--quiet", "--force", "main"},
			} {
				_, err := s.repo.Git(s.t.Context(), args...)
				s.must(err)
			}
			forcePush(s, "foreign")
		},
		back: func(s *scene) {
			forcePush(s, "main")
			_, err := s.repo.Git(s.t.Context(), "branch", "-D", "foreign")
			s.must(err)
		},
	},
	{
		slip: "force-push to an older commit, confirmed on purpose", on: own,
		fate: "once confirmed the older commit is applied", mend: "the next push continues from there",
		says: []string{"HistoryRewritten"}, place: repository,
		do: func(s *scene) {
			s.commit("Say more", func() {
				s.must(s.repo.Write(s.expand("$r/apps/note0/app.yaml"), []byte(strings.Replace(s.good[s.expand("$r/apps/note0/app.yaml")], "hello", "more", 1))))
			})
			s.says(noteText("note0"), []string{"more"})
			forcePush(s, "HEAD~1")
		},
		back: all(func(s *scene) {
			_, err := s.repo.Git(s.t.Context(), "reset", "--quiet", "--hard", "HEAD~1")
			s.must(err)
		}, confirm, func(s *scene) {
			s.says(noteText("note0"), []string{"hello"})
		}),
	},
	{
		slip: "the branch is removed on the Git host", on: own,
		fate: "what runs stays; the Repository says that the branch does not exist", mend: "the branch is pushed again",
		says: []string{"SourceNotFound", "main"}, place: repository,
		do: func(s *scene) {
			deleteBranch(s)
			ask(s)
		},
		back: func(s *scene) { forcePush(s, "main") },
	},
}

// renameStore makes the app store be called depot, with lines added to its spec.
func renameStore(lines string) act {
	return func(s *scene) {
		s.commit("Rename store", func() {
			s.must(s.repo.Remove(s.expand("$r/apps/store")))
			renamed := strings.NewReplacer("name: store", "name: depot", "spec:\n", "spec:\n"+lines).Replace(s.good[s.expand("$r/apps/store/app.yaml")])
			s.must(s.repo.Write(s.expand("$r/apps/depot/app.yaml"), []byte(renamed)))
		})
	}
}

// head is the newest commit of the clone.
func head(s *scene) string {
	commit, err := s.repo.Git(s.t.Context(), "rev-parse", "HEAD")
	s.must(err)
	return commit
}

func forcePush(s *scene, what string) {
	s.t.Helper()
	_, err := s.repo.Git(s.t.Context(), "push", "--quiet", "--force", "origin", what+":refs/heads/main")
	s.must(err)
}

// deleteBranch removes main on the server, past the server's own protection of the branch that HEAD names.
func deleteBranch(s *scene) {
	s.t.Helper()
	s.must(platform.OnServer(s.t.Context(), s.repo.Name, "update-ref", "-d", "refs/heads/main"))
}
