//go:build e2e

package accidents

import (
	"fmt"
	"strings"
)

// held are the texts that report each held deletion.
var held = []string{"DeletionsHeld", "paas.kubeop.io/confirm-deletions="}

// gitAccidents remove something from Git, or change its history.
var gitAccidents = []accident{
	{
		mistake: "the folder of a tenant is removed from the platform repository", on: inPlatform,
		outcome: "held: the tenant, its projects, apps and claims stay", recovery: "`git revert`",
		reports: append(held, "Tenant $t", "$ns/store-data"), do: remove("tenants/$t"), read: platformRepository, undo: revert,
	},
	{
		mistake: "tenant.yaml of a tenant with a repository of its own is removed", on: own,
		outcome: "held: nothing of the tenant is deleted, and kubeop still follows its repository", recovery: "`git revert`",
		reports: append(held, "Tenant $t", "$ns/store-data"), read: platformRepository,
		do: func(s *subject) {
			s.inRoot("Remove "+s.tenant, func() { s.must(root.Remove(s.expand("tenants/$t"))) })
		},
		undo: revertTenant,
	},
	{
		mistake: "tenant.yaml is removed, and the projects beside it stay", on: inPlatform,
		outcome: "the tenant and everything it has stay unchanged", recovery: "`git revert`",
		reports: []string{"tenants/$t", "tenant.yaml"}, do: remove("tenants/$t/tenant.yaml"), read: platformRepository, undo: revert,
	},
	{
		mistake: "a project is removed from a tenant's repository", on: own,
		outcome: "held, because its claim holds data", recovery: "`git revert`",
		reports: append(held, "$ns/store-data"), do: remove("$r"), read: repository, undo: revert,
	},
	{
		mistake: "a project is removed from the platform repository", on: inPlatform,
		outcome: "held, because its claim holds data", recovery: "`git revert`",
		reports: append(held, "$ns/store-data"), do: remove("$r"), read: platformRepository, undo: revert,
	},
	{
		mistake: "six of seven apps are removed by one commit", on: own,
		outcome: "held: more than five, and more than a fifth of the tenant's", recovery: "`git revert`",
		reports: append(held, "note0"), read: repository, undo: revert,
		do: remove("$r/apps/note0", "$r/apps/note1", "$r/apps/note2", "$r/apps/note3", "$r/apps/note4", "$r/apps/note5"),
	},
	{
		mistake: "everything but kubeop.yaml is removed", on: own,
		outcome: "held", recovery: "`git revert`", reports: append(held, "$ns/store-data"), do: remove("projects"), read: repository, undo: revert,
	},
	{
		mistake: "kubeop.yaml is removed with everything else", on: own,
		outcome: "nothing of the commit is applied", recovery: "`git revert`",
		reports: []string{"kubeop.yaml"}, do: remove("projects", "kubeop.yaml"), read: repository, undo: revert,
	},
	{
		mistake: "project.yaml is removed, and the apps beside it stay", on: own,
		outcome: "the project stays unchanged", recovery: "`git revert`",
		reports: []string{"projects/shop", "project.yaml"}, do: remove("$r/project.yaml"), read: repository, undo: revert,
	},
	{
		mistake: "the folder of a project is renamed", on: own,
		outcome: "the deletion of the old project is held, with its data; the new one starts empty", recovery: "`git revert`, and the removal of the new one is confirmed",
		reports: append(held, "$ns/store-data"), read: repository, undo: all(revert, confirm),
		do: all(move("projects/shop", "projects/store"), edit("projects/store/project.yaml", "shop", "store")), newPods: true,
	},
	{
		mistake: "an app with a volume is removed", on: own,
		outcome: "its pods are deleted; the claim and its data stay", recovery: "`git revert`: the app mounts its claim again",
		reports: []string{"Kept", "PersistentVolumeClaim/store-data"}, do: remove("$r/apps/store"), read: events, undo: revert, gone: true,
	},
	{
		mistake: "an app with a volume is renamed", on: own,
		outcome: "the new app says that it starts empty; the old claim stays", recovery: "`movedFrom`, or `git revert`",
		reports: []string{"movedFrom", "store"}, read: app("depot"), undo: revert, gone: true,
		do: renameStore(""),
	},
	{
		mistake: "an app with a volume is renamed, and its warning is ignored", on: own,
		outcome: "the new app runs with an empty claim beside the old one", recovery: "`movedFrom`: it mounts the former claim",
		reports: []string{"movedFrom: {app: store}"}, read: app("depot"), gone: true,
		do: all(renameStore(""), func(s *subject) { s.mustReport(output("get pvc depot-data -n $ns"), []string{"Bound"}) }),
		undo: all(renameStore("  movedFrom: {app: store}\n"), func(s *subject) {
			s.mustReport(output("get deployment depot -n $ns -o yaml"), []string{"claimName: store-data"})
			s.mustReport(app("depot"), []string{"Succeeded"})
		}, revert),
	},
	{
		mistake: "an app with a volume is moved to another project", on: own,
		outcome: "its data stays in the old project; the new app starts empty", recovery: "`git revert`, and the removal of the new project is confirmed",
		reports: []string{"StartedEmpty", "claim store-data starts empty here", "$ns"}, read: appIn("other", "store"), undo: all(revert, confirm), gone: true,
		do: func(s *subject) {
			s.commit("Move store", func() {
				s.must(s.repo.Remove(s.expand("$r/apps/store")))
				s.must(s.repo.Write("projects/other/project.yaml", fmt.Appendf(nil, projectYAML, "other")))
				s.must(s.repo.Write("projects/other/apps/store/app.yaml", []byte(s.good[s.expand("$r/apps/store/app.yaml")])))
			})
		},
	},
	{
		mistake: "the volume is removed from app.yaml", on: own,
		outcome: "the pod is replaced by one without it; the claim stays", recovery: "`git revert`",
		reports: []string{"PersistentVolumeClaim store-data: holds data"}, read: app("store"), undo: revert, newPods: true,
		do: all(edit("$r/apps/store/app.yaml", "    volumes: [{name: data, mountPath: /data, size: 1Mi}]\n", ""),
			edit("$r/apps/store/app.yaml", "    env: [{name: STARTS, value: /data/starts}]\n", "")),
	},
	{
		mistake: "the volume is renamed", on: own,
		outcome: "a new claim is created; the old one stays", recovery: "`git revert`",
		reports: []string{"PersistentVolumeClaim store-data: holds data"}, read: app("store"), undo: revert, newPods: true,
		do: edit("$r/apps/store/app.yaml", "name: data, mountPath", "name: files, mountPath"),
	},
	{
		mistake: "the volume is made smaller", on: own,
		outcome: "the API server refuses it; the app continues unchanged", recovery: "`git revert`",
		reports: []string{"store-data"}, read: app("store"), undo: revert,
		do: edit("$r/apps/store/app.yaml", "size: 1Mi", "size: 512Ki"),
	},
	{
		mistake: "one commit removes an app and the next restores it, both in one push", on: own,
		outcome: "nothing", recovery: "not needed", reports: []string{"Succeeded"}, read: repository, undo: none,
		do: func(s *subject) {
			s.must(s.repo.Remove("projects"))
			_, err := s.repo.Git(s.t.Context(), "commit", "--quiet", "--all", "--message", "Remove all")
			s.must(err)
			s.restoreFiles()
			s.push("Bring all back")
		},
	},
	{
		mistake: "a project is removed, and the next commit changes another", on: own,
		outcome: "the change is applied, the deletion stays held", recovery: "`git revert`",
		reports: append(held, "$ns/store-data"), read: repository, undo: revert,
		do: all(remove("$r"), write("projects/next/project.yaml", fmt.Sprintf(projectYAML, "next")), func(s *subject) {
			s.mustReport(output("get projects -n $home"), []string{"next"})
		}),
	},
	{
		mistake: "a deletion is confirmed with a wrong token", on: own,
		outcome: "it stays held", recovery: "`git revert`",
		reports: append(held, "$ns/store-data"), read: repository, undo: revert,
		do: all(remove("$r"), kubectl("annotate repository $t --overwrite paas.kubeop.io/confirm-deletions=yes")),
	},
	{
		mistake: "the tree of another repository is pushed", on: own,
		outcome: "held: the tree declares nothing of what is applied", recovery: "`git revert`",
		reports: append(held, "$ns/store-data"), read: repository, undo: revert, newPods: true,
		do: func(s *subject) {
			s.commit("Another's tree", func() {
				s.must(s.repo.Remove("projects"))
				s.must(s.repo.Write("projects/theirs/project.yaml", fmt.Appendf(nil, projectYAML, "theirs")))
			})
		},
	},
	{
		mistake: "force-push to an older commit", on: own,
		outcome: "held: nothing of it is applied", recovery: "the commit is pushed again, or accepted by `paas.kubeop.io/confirm-history`",
		reports: []string{"HistoryRewritten", "paas.kubeop.io/confirm-history="}, read: repository,
		do: func(s *subject) {
			s.commit("One more", func() { s.must(s.repo.Write("README.md", []byte(s.tenant))) })
			s.mustReport(repository, []string{head(s)})
			forcePush(s, "HEAD~1")
		},
		undo: func(s *subject) { forcePush(s, "main") },
	},
	{
		mistake: "force-push of an unrelated history", on: own,
		outcome: "held: nothing of it is applied", recovery: "force-push of the right one, or `paas.kubeop.io/confirm-history`",
		reports: []string{"HistoryRewritten", "paas.kubeop.io/confirm-history="}, read: repository,
		do: func(s *subject) {
			for _, args := range [][]string{
				{"checkout", "--quiet", "--orphan", "foreign"}, {"rm", "-r", "--quiet", "--cached", "."},
				{"commit", "--quiet", "--allow-empty", "--message", "Another beginning"}, {"checkout", "--quiet", "--force", "main"},
			} {
				_, err := s.repo.Git(s.t.Context(), args...)
				s.must(err)
			}
			forcePush(s, "foreign")
		},
		undo: func(s *subject) {
			forcePush(s, "main")
			_, err := s.repo.Git(s.t.Context(), "branch", "-D", "foreign")
			s.must(err)
		},
	},
	{
		mistake: "force-push to an older commit, confirmed on purpose", on: own,
		outcome: "once confirmed the older commit is applied", recovery: "the next push continues from there",
		reports: []string{"HistoryRewritten"}, read: repository,
		do: func(s *subject) {
			s.commit("Say more", func() {
				s.must(s.repo.Write(s.expand("$r/apps/note0/app.yaml"), []byte(strings.Replace(s.good[s.expand("$r/apps/note0/app.yaml")], "hello", "more", 1))))
			})
			s.mustReport(noteText("note0"), []string{"more"})
			forcePush(s, "HEAD~1")
		},
		undo: all(func(s *subject) {
			_, err := s.repo.Git(s.t.Context(), "reset", "--quiet", "--hard", "HEAD~1")
			s.must(err)
		}, confirm, func(s *subject) {
			s.mustReport(noteText("note0"), []string{"hello"})
		}),
	},
	{
		mistake: "the branch is removed on the Git host", on: own,
		outcome: "what runs stays; the Repository says that the branch does not exist", recovery: "the branch is pushed again",
		reports: []string{"SourceNotFound", "main"}, read: repository,
		do: func(s *subject) {
			deleteBranch(s)
			requestReconcile(s)
		},
		undo: func(s *subject) { forcePush(s, "main") },
	},
}

// renameStore renames the app store to depot, and adds lines to its spec.
func renameStore(lines string) action {
	return func(s *subject) {
		s.commit("Rename store", func() {
			s.must(s.repo.Remove(s.expand("$r/apps/store")))
			renamed := strings.NewReplacer("name: store", "name: depot", "spec:\n", "spec:\n"+lines).Replace(s.good[s.expand("$r/apps/store/app.yaml")])
			s.must(s.repo.Write(s.expand("$r/apps/depot/app.yaml"), []byte(renamed)))
		})
	}
}

// head returns the newest commit of the clone.
func head(s *subject) string {
	commit, err := s.repo.Git(s.t.Context(), "rev-parse", "HEAD")
	s.must(err)
	return commit
}

func forcePush(s *subject, what string) {
	s.t.Helper()
	_, err := s.repo.Git(s.t.Context(), "push", "--quiet", "--force", "origin", what+":refs/heads/main")
	s.must(err)
}

// deleteBranch removes main on the server, although the server protects the branch that HEAD names.
func deleteBranch(s *subject) {
	s.t.Helper()
	s.must(platform.OnServer(s.t.Context(), s.repo.Name, "update-ref", "-d", "refs/heads/main"))
}
