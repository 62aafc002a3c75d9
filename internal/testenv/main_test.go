package testenv_test

import (
	"os"
	"testing"

	"github.com/leadership-journal/journald/internal/testenv"
)

var kube testenv.SharedKubernetes

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }
