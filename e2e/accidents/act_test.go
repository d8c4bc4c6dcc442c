//go:build e2e

package accidents

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// act is something that somebody does to a tenant.
type act func(*scene)

// all does one act after another.
func all(acts ...act) act {
	return func(s *scene) {
		for _, do := range acts {
			do(s)
		}
	}
}

// Acts in the repository that the tenant pushes to; names and contents may hold $t, $ns and $r.

// remove removes files or folders, in one commit.
func remove(names ...string) act {
	return func(s *scene) {
		s.commit("Remove "+strings.Join(names, ", "), func() {
			for _, name := range names {
				s.must(s.repo.Remove(s.expand(name)))
			}
		})
	}
}

// write writes a file.
func write(name, content string) act {
	return func(s *scene) {
		s.commit("Write "+name, func() { s.must(s.repo.Write(s.expand(name), []byte(s.expand(content)))) })
	}
}

// edit replaces a text in a file.
func edit(name, old, now string) act {
	return func(s *scene) {
		s.commit("Edit "+name, func() {
			content, err := s.repo.Read(s.expand(name))
			s.must(err)
			if !strings.Contains(string(content), old) {
				s.t.Fatalf("%s does not hold %q", name, old)
			}
			s.must(s.repo.Write(s.expand(name), []byte(strings.Replace(string(content), old, s.expand(now), 1))))
		})
	}
}

// editTenant replaces a text in the tenant's file of the platform repository.
func editTenant(old, now string) act {
	return func(s *scene) {
		s.inRoot("Edit the tenant "+s.tenant, func() {
			name := s.expand("tenants/$t/tenant.yaml")
			content, err := root.Read(name)
			s.must(err)
			s.must(root.Write(name, []byte(strings.Replace(string(content), s.expand(old), s.expand(now), 1))))
		})
	}
}

// move moves a file or folder.
func move(from, to string) act {
	return func(s *scene) {
		s.commit("Move "+from, func() {
			_, err := s.repo.Git(s.t.Context(), "mv", s.expand(from), s.expand(to))
			s.must(err)
		})
	}
}

// revert pushes the files as they were.
func revert(s *scene) { s.commit("Revert", s.restoreFiles) }

// revertTenant pushes the tenant's file of the platform repository as it was.
func revertTenant(s *scene) {
	s.inRoot("Revert the tenant "+s.tenant, func() {
		s.must(root.Write(s.expand("tenants/$t/tenant.yaml"), []byte(s.tenantFile)))
	})
}

// Acts with kubectl, as the administrator.

// kubectl must succeed.
func kubectl(args string) act {
	return func(s *scene) {
		_, err := platform.Kubectl(s.t.Context(), words(s.expand(args))...)
		s.must(err)
	}
}

// refused must not succeed; what it says is the scene's refusal.
func refused(args string) act {
	return func(s *scene) {
		out, err := platform.Kubectl(s.t.Context(), words(s.expand(args))...)
		if err == nil {
			s.t.Fatalf("kubectl %s is not refused: %s", s.expand(args), out)
		}
		s.refusal = err.Error()
	}
}

// words splits a command; a word in single quotes may hold spaces.
func words(command string) []string {
	var all []string
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

// none does nothing: the right act was the refusal, or a mending by itself.
func none(*scene) {}

// ask has a Repository look now.
func ask(s *scene) { askFor("repository " + s.repository())(s) }

func askFor(what string) act {
	return func(s *scene) {
		kubectl("annotate " + what + " --overwrite reconcile.fluxcd.io/requestedAt=" + strconv.FormatInt(time.Now().UnixNano(), 10))(s)
	}
}

// confirm does what the Repository's status says, once it says so.
func confirm(s *scene) {
	s.t.Helper()
	s.confirmIn(s.repository())
}

// confirmIn confirms what a Repository holds, and again where the list changed meanwhile, until nothing is held any more.
func (s *scene) confirmIn(repository string) {
	s.t.Helper()
	asked := false
	s.until("what "+repository+" holds is confirmed", func(ctx context.Context) error {
		if err := s.attempted(ctx, repository); err != nil {
			return err // What it says is about an earlier commit.
		}
		now := &v1alpha1.Repository{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Name: repository}, now); err != nil {
			return err
		}
		if !stage.AsksForConfirmation(now) {
			if !asked {
				return errors.New("it holds nothing")
			}
			return nil
		}
		asked = true
		return errors.Join(platform.ConfirmAs(ctx, now), errors.New("it asks for a confirmation"))
	})
}
