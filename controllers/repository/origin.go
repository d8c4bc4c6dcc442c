package repository

import (
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// origin returns the commit that declares an object: of a preview's object, that of the branch.
func (s *scope) origin(ref identity.Ref) tree.Origin {
	if from := s.found.OriginOf(ref); from != nil {
		return *from
	}
	return tree.Origin{Revision: s.commit.Revision, Author: s.commit.Author}
}
