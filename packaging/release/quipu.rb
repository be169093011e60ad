class Quipu < Formula
  desc "Ethereum history server"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/quipu-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/quipu-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/quipu-@VERSION@-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "@aarch64-unknown-linux-gnu@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/quipu-@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@x86_64-unknown-linux-gnu@"
    end
  end

  def install
    bin.install "quipu"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/quipu.bash" => "quipu"
    fish_completion.install "completions/quipu.fish"
    zsh_completion.install "completions/_quipu"
    pkgshare.install "packaging"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/quipu --version")
    system bin/"quipu", "sample", "--to", "archives", "--block-count", "20", "--txs-per-block", "2"
    system bin/"quipu", "verify", "--genesis", "archives/genesis.json", "archives"
  end
end
